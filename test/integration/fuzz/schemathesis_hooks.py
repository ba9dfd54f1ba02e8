"""What a schema cannot say: which environment and which runner are there, and that pools are to stay small here."""

import os

import schemathesis

ENVIRONMENT = int(os.environ["ENVIRONMENT_ID"])
RUNNER = os.environ["RUNNER_ID"]
# The fuzzer learns ids from answers; without these two there is little left to fuzz.
KEPT = (ENVIRONMENT, str(ENVIRONMENT), RUNNER)


def is_integer(value, maximum):
    return type(value) is int and 0 <= value <= maximum


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.operation.path.startswith("/runners/{id}/"):
        case.path_parameters["id"] = RUNNER
    elif case.method in ("PUT", "DELETE") and case.path_parameters.get("id") in KEPT:
        case.path_parameters["id"] = 0
    body = case.body
    if not isinstance(body, dict):
        return
    if is_integer(body.get("prewarmingPoolSize"), 100_000):
        body["prewarmingPoolSize"] %= 2
    # Every second claim is of an environment that is there.
    wanted = body.get("executionEnvironmentId")
    if is_integer(wanted, 2**53 - 1) and wanted % 2 == 0:
        body["executionEnvironmentId"] = ENVIRONMENT
