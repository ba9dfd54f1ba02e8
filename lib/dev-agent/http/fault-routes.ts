import type { Router } from 'express';
import { HttpFailure } from '../failure.js';
import type { Faults } from '../faults.js';
import { Fields } from '../fields.js';
import { nsToMs } from '../time.js';
import { optionalBody } from './answers.js';

export const FAULTS_PREFIX = '/v1/agent/faults';

/**
 * `/v1/agent/faults/…`: faults on request. GET lists the delays and answers in force, DELETE lifts them, and POST with a
 * JSON body asks for one:
 *
 *   cut-events {}                               outage {seconds}
 *   lose-events {count}                         wipe {}
 *   delay {prefix, time, times?}                restart-task {allocation, task?}
 *   answer {prefix, status, times?}             kill-task {allocation, task?, oom?}
 *   drop-execs {allocation?}
 */
export function addFaultRoutes(router: Router, faults: () => Faults): void {
  router.get(FAULTS_PREFIX, (_request, response) => {
    // JSON has no Infinity; null stands for "every request".
    response.status(200).json({ rules: faults().rules });
  });

  router.delete(FAULTS_PREFIX, (_request, response) => {
    faults().clear();
    response.status(204).end();
  });

  router.post(`${FAULTS_PREFIX}/:name`, async (request, response) => {
    const act = Object.hasOwn(ACTIONS, request.params.name) ? ACTIONS[request.params.name] : undefined;
    if (!act) throw new HttpFailure(404, `there is no fault ${request.params.name}`);
    const result = await act(faults(), Fields.of(optionalBody(request), request.params.name));
    response.status(200).json(result ?? {});
  });
}

type Action = (faults: Faults, body: Fields) => Promise<object | undefined> | object | undefined;

const ACTIONS: Readonly<Record<string, Action>> = {
  'cut-events': (faults) => {
    faults.cutEventStreams();
    return undefined;
  },
  'lose-events': (faults, body) => {
    faults.loseEvents(body.integer('count', 1));
    return undefined;
  },
  delay: (faults, body) => {
    faults.delay(prefixOf(body), nsToMs(body.duration('time', 0)), timesOf(body, Infinity));
    return undefined;
  },
  answer: (faults, body) => {
    faults.answer(prefixOf(body), body.integer('status', 500), timesOf(body, 1));
    return undefined;
  },
  'restart-task': async (faults, body) => ({
    done: await faults.restartTask(allocationOf(body), taskOf(body)),
  }),
  'kill-task': async (faults, body) => ({
    done: await faults.killTask(allocationOf(body), taskOf(body), { oomKilled: body.boolean('oom', false) }),
  }),
  'drop-execs': (faults, body) => {
    const allocation = body.string('allocation', '');
    return { dropped: faults.dropExecs(allocation === '' ? undefined : allocation) };
  },
  outage: (faults, body) => {
    const ms = body.integer('seconds', 5) * 1000;
    // The answer goes out first; then there is nobody to answer.
    setImmediate(() => void faults.outage(ms));
    return undefined;
  },
  wipe: async (faults) => {
    await faults.wipe();
    return undefined;
  },
};

function prefixOf(body: Fields): string {
  const prefix = body.string('prefix', '');
  if (!prefix.startsWith('/')) throw new HttpFailure(400, 'prefix must be the beginning of a path');
  return prefix;
}

function timesOf(body: Fields, fallback: number): number {
  return body.has('times') ? body.integer('times', 1) : fallback;
}

function allocationOf(body: Fields): string {
  const id = body.string('allocation', '');
  if (id === '') throw new HttpFailure(400, 'allocation must be given');
  return id;
}

function taskOf(body: Fields): string | undefined {
  const task = body.string('task', '');
  return task === '' ? undefined : task;
}
