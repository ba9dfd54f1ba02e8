import { isRecord, isTextMap } from './decode.js';
import { protocolError } from './errors.js';
import type { WireJob, WireTask, WireTaskGroup } from './wire.js';

/**
 * Checks a job as Nomad sent it, and passes it on whole, unknown fields included: what was read is written back.
 *
 * Only the fields that `WireJob` names are looked at. Those that may be absent but not null are dropped where they are
 * null, as in the answer of `POST /v1/jobs/parse`, which gives every field that the job left open as null.
 */
export function decodeJob(value: unknown): WireJob {
  const job = isRecord(value) ? withoutNulls(value, JOB_FIELDS) : value;
  if (!isJob(job)) throw protocolError(`a job lacks what a job has${nameOf(value)}`);
  return job;
}

type FieldTypes = Readonly<Record<string, 'string' | 'number' | 'boolean'>>;

const JOB_FIELDS: FieldTypes = {
  Name: 'string',
  Type: 'string',
  Status: 'string',
  Stop: 'boolean',
  Version: 'number',
  Namespace: 'string',
  Region: 'string',
  CreateIndex: 'number',
  ModifyIndex: 'number',
  JobModifyIndex: 'number',
};
const GROUP_FIELDS: FieldTypes = { Count: 'number' };
const RESOURCE_FIELDS: FieldTypes = { CPU: 'number', MemoryMB: 'number', MemoryMaxMB: 'number' };
const NETWORK_FIELDS: FieldTypes = { Mode: 'string' };
const PORT_FIELDS: FieldTypes = { To: 'number', Value: 'number' };

/**
 * The same without the named fields that are null, in every place where `WireJob` names fields. A copy only where there is
 * such a field: jobs of events have none, and there are many of them.
 */
function withoutNulls(value: Record<string, unknown>, fields: FieldTypes): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined;
  for (const name in fields) {
    if (value[name] !== null) continue;
    copy ??= { ...value };
    delete copy[name];
  }
  for (const name in NESTED) {
    const nested = NESTED[name];
    const field = value[name];
    if (!nested || field === undefined || field === null) continue;
    const kept = nestedWithoutNulls(field, nested);
    if (kept === field) continue;
    copy ??= { ...value };
    copy[name] = kept;
  }
  return copy ?? value;
}

const NESTED: Readonly<Record<string, FieldTypes>> = {
  TaskGroups: GROUP_FIELDS,
  Tasks: {},
  Resources: RESOURCE_FIELDS,
  Networks: NETWORK_FIELDS,
  DynamicPorts: PORT_FIELDS,
};

function nestedWithoutNulls(value: unknown, fields: FieldTypes): unknown {
  if (!Array.isArray(value)) return isRecord(value) ? withoutNulls(value, fields) : value;
  const items: readonly unknown[] = value;
  const kept = items.map((item) => nestedWithoutNulls(item, fields));
  return kept.some((item, at) => item !== items[at]) ? kept : items;
}

function isJob(value: unknown): value is WireJob {
  return (
    isRecord(value) &&
    typeof value['ID'] === 'string' &&
    hasTypes(value, JOB_FIELDS) &&
    isMissingOr(value['Meta'], isTextMap) &&
    isMissingOrList(value['TaskGroups'], isGroup)
  );
}

function isGroup(value: unknown): value is WireTaskGroup {
  return (
    isRecord(value) &&
    typeof value['Name'] === 'string' &&
    hasTypes(value, GROUP_FIELDS) &&
    isMissingOr(value['Meta'], isTextMap) &&
    isMissingOrList(value['Networks'], isNetwork) &&
    isMissingOrList(value['Tasks'], isTask)
  );
}

function isTask(value: unknown): value is WireTask {
  return (
    isRecord(value) &&
    typeof value['Name'] === 'string' &&
    typeof value['Driver'] === 'string' &&
    isMissingOr(value['Config'], isRecord) &&
    isMissingOr(value['Env'], isTextMap) &&
    isMissingOr(
      value['Resources'],
      (resources) => isRecord(resources) && hasTypes(resources, RESOURCE_FIELDS),
    )
  );
}

function isNetwork(value: unknown): boolean {
  return isRecord(value) && hasTypes(value, NETWORK_FIELDS) && isMissingOrList(value['DynamicPorts'], isPort);
}

function isPort(value: unknown): boolean {
  return isRecord(value) && typeof value['Label'] === 'string' && hasTypes(value, PORT_FIELDS);
}

function hasTypes(value: Record<string, unknown>, fields: FieldTypes): boolean {
  return Object.entries(fields).every(
    ([name, type]) => value[name] === undefined || typeof value[name] === type,
  );
}

function isMissingOr(value: unknown, check: (value: unknown) => boolean): boolean {
  return value === undefined || value === null || check(value);
}

function isMissingOrList(value: unknown, check: (item: unknown) => boolean): boolean {
  return isMissingOr(value, (list) => Array.isArray(list) && list.every(check));
}

function nameOf(value: unknown): string {
  return isRecord(value) && typeof value['ID'] === 'string' ? `: ${value['ID']}` : '';
}
