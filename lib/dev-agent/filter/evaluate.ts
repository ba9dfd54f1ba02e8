import { HttpFailure } from '../failure.js';
import type { Filter } from './parser.js';

/**
 * Whether a record meets a filter. A field that no record has is refused as Nomad does it; a key that a map lacks equals
 * nothing.
 */
export function matches(filter: Filter, datum: unknown): boolean {
  return evaluate(filter, { datum, names: new Map() });
}

interface Scope {
  readonly datum: unknown;
  /** What the names bound by `any … as` stand for. */
  readonly names: ReadonlyMap<string, unknown>;
}

/** Fields that are maps, whose keys are data. */
const MAPS = new Set(['Meta', 'Env', 'Config', 'TaskStates']);

function evaluate(filter: Filter, scope: Scope): boolean {
  switch (filter.kind) {
    case 'and':
      return evaluate(filter.left, scope) && evaluate(filter.right, scope);
    case 'or':
      return evaluate(filter.left, scope) || evaluate(filter.right, scope);
    case 'not':
      return !evaluate(filter.of, scope);
    case 'any': {
      const list = lookUp(filter.path, scope);
      if (!Array.isArray(list)) return false;
      return list.some((entry: unknown) => {
        const names = new Map(scope.names).set(filter.name, entry);
        return evaluate(filter.of, { datum: scope.datum, names });
      });
    }
    case 'equals':
      return asText(lookUp(filter.path, scope)) === filter.value;
    case 'matches': {
      const text = asText(lookUp(filter.path, scope));
      return text !== undefined && filter.pattern.test(text);
    }
  }
}

function lookUp(path: readonly string[], { datum, names }: Scope): unknown {
  const [first = ''] = path;
  const isBound = names.has(first);
  let value: unknown = isBound ? names.get(first) : datum;
  let isMap = false;
  for (const [at, part] of path.slice(isBound ? 1 : 0).entries()) {
    if (isMap) value = isRecord(value) ? value[part] : undefined;
    else if (isRecord(value) && part in value) value = value[part];
    else throw unknownField(path, part, isBound ? at + 1 : at);
    isMap = MAPS.has(part);
  }
  return value;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function asText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

function unknownField(path: readonly string[], part: string, at: number): HttpFailure {
  return new HttpFailure(
    400,
    `failed to read result page: error finding value in datum: /${path.join('/')} at part ${at}: ` +
      `couldn't find key: struct field with name "${part}"`,
  );
}
