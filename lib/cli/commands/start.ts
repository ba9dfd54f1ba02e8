/**
 * From nothing to a service that runs programs: what `npm start` does.
 *
 * Embedded agent (unless a Nomad is configured) → service → environments → full pools → a sample program through the
 * public API → `ready`. Everything but starting the two goes through the API, as any client would do it.
 */
import { systemClock } from '../../base/clock.js';
import { createLogger } from '../../base/log.js';
import type { Config } from '../../config/config.js';
import type { ConfigSources } from '../../config/load.js';
import { loadConfig } from '../../config/load.js';
import { isLoopback } from '../../config/loopback.js';
import type { FlagValue } from '../../config/sources.js';
import { hasTokens } from '../../config/tokens.js';
import { packageVersion } from '../../config/version.js';
import type { Service } from '../../service.js';
import { createService } from '../../service.js';
import type { AgentDriver } from '../agent-self.js';
import { askAgent } from '../agent-self.js';
import type { EmbeddedAgent } from '../embedded-agent.js';
import { openEmbeddedAgent } from '../embedded-agent.js';
import type { FlagSpecs, GivenFlags } from '../flags.js';
import { CONFIG_FLAGS, configFlags, parseFlags, UsageError } from '../flags.js';
import type { CliIo } from '../io.js';
import { onSignals } from '../signals.js';
import { prepareService } from '../preparation.js';
import { Talk } from '../talk.js';
import type { ToolLookup } from '../tools.js';

/** Flags that go to the embedded agent as they are. */
const AGENT_FLAGS = {
  driver: { value: 'NAME', help: 'driver of the embedded agent: sandbox, process or simulated' },
  'exec-delay': { value: 'TIME', help: 'what opening an exec costs on the embedded agent, such as 60ms' },
  'start-delay': { value: 'TIME', help: 'what starting a runner costs on the embedded agent' },
  'max-starts': { value: 'N', help: 'runners that the embedded agent starts at once' },
  'max-execs-opening': { value: 'N', help: 'execs that the embedded agent opens at once' },
} as const satisfies FlagSpecs;

export const START_FLAGS = {
  pool: { value: 'N', help: 'idle runners of each environment, instead of what the definitions say' },
  once: { help: 'stop after the sample program; exit code 0 if it did what it should' },
  ...AGENT_FLAGS,
  ...CONFIG_FLAGS,
} as const satisfies FlagSpecs;

const clock = systemClock;

/** Resolves with the exit code once everything is stopped again. */
export async function start(args: readonly string[], io: CliIo): Promise<number> {
  const given = parseFlags(START_FLAGS, args);
  const poolSize = poolSizeOf(given);
  const talk = new Talk(io.stdout);
  const stop = new AbortController();
  const running: { service?: Service; agent?: EmbeddedAgent } = {};
  const { signalled, stopListening } = onSignals(io.signals, () => void running.service?.destroy());
  void signalled.then(() => {
    talk.say('stopping', 'a second signal does not wait for running programs');
    stop.abort();
  });
  try {
    const config = await startAgent({ given, io, talk, signal: stop.signal, running });
    const service = createService(config, { log: createLogger(config.log) });
    running.service = service;
    await service.start();
    const agentEnded = running.agent?.ended.then(() => !stop.signal.aborted) ?? NEVER;
    const driver = await embeddedDriver(config);
    const isGood = await prepareService({
      url: service.url,
      config,
      poolSize,
      tools: toolsOf(driver, io),
      runsPrograms: driver !== 'simulated',
      clock,
      talk,
      signal: stop.signal,
    });
    if (given.has('once')) return isGood && !stop.signal.aborted ? 0 : 1;
    if (!stop.signal.aborted) sayReady(service.url, hasTokens(config.auth), io);
    const hasFailed = await Promise.race([agentEnded, whenAborted(stop.signal).then(() => false)]);
    if (hasFailed) talk.say('failed', 'the embedded agent has ended');
    return hasFailed ? 1 : 0;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    return 1; // what fails because it was told to stop is no news
  } finally {
    await running.service?.stop();
    stop.abort();
    await running.agent?.stop();
    stopListening();
  }
}

const NEVER = new Promise<never>(() => undefined);

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

interface AgentStart {
  readonly given: GivenFlags;
  readonly io: CliIo;
  readonly talk: Talk;
  readonly signal: AbortSignal;
  readonly running: { agent?: EmbeddedAgent };
}

/** Starts the embedded agent, unless some source names a Nomad, and resolves with the configuration to run with. */
async function startAgent({ given, io, talk, signal, running }: AgentStart): Promise<Config> {
  const sources = sourcesOf(given, io);
  const loaded = loadConfig(sources);
  for (const warning of loaded.warnings) talk.say('warning', warning);
  talk.say('serai', packageVersion());
  if (loaded.given.has('nomad.addresses')) {
    const useless = Object.keys(AGENT_FLAGS).find((name) => given.has(name));
    if (useless === undefined) return loaded.config;
    throw new UsageError(`--${useless} is for the embedded agent, but nomad.addresses names a Nomad`);
  }
  running.agent = await openEmbeddedAgent({
    program: io.program,
    args: agentArgs(given),
    env: io.env,
    clock,
    talk,
    signal,
  });
  const address: FlagValue = { flag: 'start', key: 'nomad.addresses', text: running.agent.address };
  return loadConfig({ ...sources, flags: [...sources.flags, address] }).config;
}

/** A presentable default for a terminal; whatever the operator says wins. */
const PRESETS: readonly FlagValue[] = [
  { flag: 'start', key: 'log.level', text: 'warn' },
  { flag: 'start', key: 'log.format', text: 'text' },
];

function sourcesOf(given: GivenFlags, io: CliIo): ConfigSources & { readonly flags: readonly FlagValue[] } {
  const file = given.get('config')?.[0];
  return {
    ...(file === undefined ? {} : { file }),
    env: io.env,
    cwd: io.cwd,
    flags: configFlags(given),
    presets: PRESETS,
  };
}

function poolSizeOf(given: GivenFlags): number | undefined {
  const text = given.get('pool')?.[0];
  if (text === undefined) return undefined;
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw new UsageError(`--pool takes the number of idle runners, not ${JSON.stringify(text)}`);
}

function agentArgs(given: GivenFlags): string[] {
  return Object.keys(AGENT_FLAGS).flatMap((name) =>
    (given.get(name) ?? []).flatMap((value) => [`--${name}`, value]),
  );
}

function sayReady(url: string, hasToken: boolean, { stdout }: CliIo): void {
  const token = hasToken ? ' -H "Poseidon-Token: $TOKEN"' : '';
  stdout.write(`ready ${url}\n\nClaim a runner:\n`);
  stdout.write(
    `  curl -s${token} -H 'Content-Type: application/json' -d '{"executionEnvironmentId": 0, "inactivityTimeout": 300}' ${url}/api/v1/runners\n`,
  );
}

/** The driver of an embedded agent, ours or one that runs already; undefined where images bring the programs. */
async function embeddedDriver({ nomad }: Config): Promise<AgentDriver | undefined> {
  const [address = ''] = nomad.addresses;
  const driver = isLoopback(new URL(address).hostname) ? await askAgent(address) : undefined;
  return driver === 'other' ? undefined : driver;
}

/** The sandbox and process drivers run the programs of this machine. */
function toolsOf(driver: AgentDriver | undefined, { env }: CliIo): ToolLookup | undefined {
  if (driver !== 'process' && driver !== 'sandbox') return undefined;
  return { path: env['PATH'], isSandboxed: driver === 'sandbox' };
}
