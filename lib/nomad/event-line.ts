import { ServiceError } from '../base/errors.js';
import { decodeAllocation } from './allocations.js';
import { Fields } from './decode.js';
import { isDenial, protocolError } from './errors.js';
import { decodeEvaluation } from './evaluations.js';
import { decodeJob } from './job-document.js';
import type { NomadEvent } from './model.js';
import { decodeNode } from './nodes.js';

/**
 * Reads one line of the event stream: its events, none for a heartbeat (`{}`). Throws for whatever else: a line that is
 * passed over would be a gap.
 */
export function decodeEventLine(line: string): NomadEvent[] {
  const fields = new Fields(parseLine(line), 'a line of the event stream');
  return fields.list('Events').flatMap((event) => decodeEvent(event) ?? []);
}

/** What is wrong with a stream that ended with `rest` after its last line. */
export function endOfStream(rest: string): ServiceError {
  if (rest === '') return new ServiceError('NOMAD_UNREACHABLE', 'the event stream ended');
  if (rest.startsWith('{'))
    return new ServiceError('NOMAD_UNREACHABLE', 'the event stream ended inside a line');
  return textInStream(rest);
}

function parseLine(line: string): unknown {
  try {
    const value: unknown = JSON.parse(line);
    return value;
  } catch {
    throw textInStream(line); // the text tells more than the parser
  }
}

/** Nomad writes what went wrong into the body, as plain text after the last event. */
function textInStream(text: string): ServiceError {
  const shown = text.slice(0, 200);
  if (!isDenial(text)) return protocolError(`the event stream holds a line that is no JSON: ${shown}`);
  return new ServiceError('NOMAD_REFUSED', `Nomad refused the event stream: ${shown}`);
}

/** Undefined for topics that were not asked for, and for events that come without their object. */
function decodeEvent(event: Fields): NomadEvent | undefined {
  const index = event.number('Index');
  const payload = event.child('Payload');
  switch (event.text('Topic')) {
    case 'Allocation': {
      const object = payload?.raw('Allocation');
      return object ? { topic: 'allocation', index, allocation: decodeAllocation(object) } : undefined;
    }
    case 'Evaluation': {
      const object = payload?.raw('Evaluation');
      return object ? { topic: 'evaluation', index, evaluation: decodeEvaluation(object) } : undefined;
    }
    case 'Job': {
      const object = payload?.raw('Job');
      return object ? { topic: 'job', index, job: decodeJob(object) } : undefined;
    }
    case 'Node': {
      const object = payload?.raw('Node');
      return object ? { topic: 'node', index, node: decodeNode(object) } : undefined;
    }
    default:
      return undefined;
  }
}
