import { files } from './files.js';
import { forks } from './forks.js';
import { largeFiles } from './large-files.js';
import { latency } from './latency.js';
import { load } from './load.js';
import type { AloneMeasure, Measure } from './measure.js';
import { memory, refill } from './pools.js';
import { scale } from './scale.js';
import { session, sessionLoad } from './session.js';
import { soak } from './soak.js';
import { keystrokes, output } from './streams.js';

/** What is measured, by the name that selects it. */
export const MEASURES: Readonly<Record<string, Measure>> = {
  latency,
  session,
  keystrokes,
  output,
  files,
  load,
  'session-load': sessionLoad,
  refill,
  memory,
  forks,
};

/** Measured only where it is named, since it takes minutes. */
export const ON_REQUEST: Readonly<Record<string, Measure>> = { soak, 'large-files': largeFiles };

/** Measured only where it is named, on processes of its own and without the others beside it. */
export const ALONE: Readonly<Record<string, AloneMeasure>> = { scale };
