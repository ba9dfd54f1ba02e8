/**
 * Environments in Nomad, which is their only store: one template job each.
 */
import type { EnvironmentId } from '../base/ids.js';
import { Slots } from '../base/slots.js';
import type { NomadJobs } from '../nomad/api.js';
import type { JobRow } from '../nomad/model.js';
import type { WireJob } from '../nomad/wire.js';
import type { BaseJob } from './base-job.js';
import { CONFIG_GROUP, groupOf } from './base-job.js';
import type { Environment } from './environment.js';
import {
  createTemplateJob,
  DELETING_META,
  parseTemplateJob,
  parseTemplateJobId,
  TEMPLATE_PREFIX,
  templateJobId,
} from './template.js';

/** An environment as Nomad has it, with the job that runners of it are copied from. */
export interface StoredEnvironment {
  readonly environment: Environment;
  /** Written by another tool. */
  readonly foreign: boolean;
  readonly job: WireJob;
  readonly jobModifyIndex: number;
  /** The job has ended or is stopped: Nomad will collect it in time, unless it is registered again. */
  readonly dead: boolean;
  /** A replica deletes the environment: its runners go first, the template last. */
  readonly deleting: boolean;
}

export interface UnreadableTemplate {
  readonly jobId: string;
  readonly reason: string;
}

export interface TemplateListing {
  readonly environments: readonly StoredEnvironment[];
  readonly unreadable: readonly UnreadableTemplate[];
}

export interface EnvironmentStoreDeps {
  readonly jobs: NomadJobs;
  readonly base: BaseJob;
  /** Mode of the network of environments that have one. */
  readonly networkMode: string;
}

/** Rows of a job list have no groups, so each template takes a request of its own. */
const PARALLEL_READS = 20;

export class EnvironmentStore {
  readonly #deps: EnvironmentStoreDeps;

  constructor(deps: EnvironmentStoreDeps) {
    this.#deps = deps;
  }

  /** All templates of Nomad. */
  async list(signal?: AbortSignal): Promise<TemplateListing> {
    const rows = await this.#deps.jobs.list({ prefix: TEMPLATE_PREFIX, ...(signal ? { signal } : {}) });
    return this.read(rows, signal);
  }

  /** The templates among the rows of a job list. Rejects with the first failure of Nomad; bad jobs are no failure. */
  async read(rows: readonly JobRow[], signal?: AbortSignal): Promise<TemplateListing> {
    const slots = new Slots(PARALLEL_READS);
    const templates = rows.filter((row) => parseTemplateJobId(row.id) !== undefined);
    const jobs = await Promise.all(
      templates.map((row) => slots.with(() => this.#deps.jobs.get(row.id, signal), signal)),
    );
    const environments: StoredEnvironment[] = [];
    const unreadable: UnreadableTemplate[] = [];
    for (const job of jobs) {
      if (!job) continue; // purged since it was listed
      const stored = readTemplate(job);
      if ('reason' in stored) unreadable.push(stored);
      else environments.push(stored);
    }
    return { environments, unreadable };
  }

  /** The environment as Nomad has it now; undefined where it has none, or none that can be understood. */
  async get(id: EnvironmentId, signal?: AbortSignal): Promise<StoredEnvironment | undefined> {
    const job = await this.#deps.jobs.get(templateJobId(id), signal);
    const stored = job && readTemplate(job);
    return stored && 'reason' in stored ? undefined : stored;
  }

  /** Registers the template job of `environment`, over whatever is there. */
  async put(environment: Environment, signal?: AbortSignal): Promise<StoredEnvironment> {
    const job = createTemplateJob(environment, this.#deps.base, this.#deps.networkMode);
    return this.#register(environment, job, signal);
  }

  /**
   * Registers a template again that died or vanished. Nomad starts a finished batch job only in a new version, so the
   * job is marked with the version that ended.
   */
  async restore(stored: StoredEnvironment, signal?: AbortSignal): Promise<StoredEnvironment> {
    const job = structuredClone(stored.job);
    for (const group of job.TaskGroups ?? []) {
      if (group.Count === 0) group.Meta = { ...group.Meta, serai_restored: String(stored.jobModifyIndex) };
    }
    delete job.Stop;
    const restored = await this.#register(stored.environment, job, signal);
    return { ...restored, foreign: stored.foreign };
  }

  /** Marks a template, so that every replica knows of the deletion that begins. */
  async markDeleting(stored: StoredEnvironment, signal?: AbortSignal): Promise<StoredEnvironment> {
    const job = structuredClone(stored.job);
    const config = groupOf(job, CONFIG_GROUP);
    if (config) config.Meta = { ...config.Meta, [DELETING_META]: 'true' };
    const marked = await this.#register(stored.environment, job, signal);
    return { ...marked, foreign: stored.foreign, deleting: true };
  }

  /** Purges the template job; one that is not there is no failure. */
  async remove(id: EnvironmentId, signal?: AbortSignal): Promise<void> {
    await this.#deps.jobs.purge(templateJobId(id), signal);
  }

  async #register(
    environment: Environment,
    job: WireJob,
    signal: AbortSignal | undefined,
  ): Promise<StoredEnvironment> {
    const { jobModifyIndex } = await this.#deps.jobs.register(job, signal ? { signal } : {});
    return { environment, foreign: false, job, jobModifyIndex, dead: false, deleting: false };
  }
}

/** Reads one template job, as a list or an event gave it. */
export function readTemplate(job: WireJob): StoredEnvironment | UnreadableTemplate {
  const parsed = parseTemplateJob(job);
  if (parsed.kind === 'unreadable') return { jobId: job.ID, reason: parsed.reason };
  return {
    environment: parsed.environment,
    foreign: parsed.foreign,
    job,
    jobModifyIndex: job.JobModifyIndex ?? 0,
    dead: job.Stop === true || job.Status === 'dead',
    deleting: groupOf(job, CONFIG_GROUP)?.Meta?.[DELETING_META] !== undefined,
  };
}
