import { HttpFailure } from '../failure.js';

/**
 * The part of Nomad's filter language (go-bexpr) that the service uses:
 *
 *   or     = and { "or" and }                    any  = "any" selector "as" name "{" or "}"
 *   and    = not { "and" not }                   test = selector ("==" | "!=" | "matches" | "not matches") value
 *   not    = "not" not | "(" or ")" | any | test
 *
 * A selector is `Name`, `tg.Name` or `tg.Meta["key"]`; a value is quoted, or a bare word or number. Everything else is
 * refused with a text like Nomad's, so that an expression that only a real server takes does not pass unnoticed.
 */
export type Filter =
  | { readonly kind: 'and' | 'or'; readonly left: Filter; readonly right: Filter }
  | { readonly kind: 'not'; readonly of: Filter }
  | { readonly kind: 'any'; readonly path: readonly string[]; readonly name: string; readonly of: Filter }
  | { readonly kind: 'equals'; readonly path: readonly string[]; readonly value: string }
  | { readonly kind: 'matches'; readonly path: readonly string[]; readonly pattern: RegExp };

const VALUE_EXPECTED = '"-", "0", "\\"", "`", [ \\t\\r\\n], [1-9] or [a-zA-Z]';

/** Parses an expression. Throws a 400 where it is none, or none that the agent knows. */
export function parseFilter(text: string): Filter {
  const parser = new Parser(text);
  const filter = parser.or();
  parser.end();
  return filter;
}

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  or(): Filter {
    let left = this.#and();
    while (this.#word('or')) left = { kind: 'or', left, right: this.#and() };
    return left;
  }

  end(): void {
    this.#blanks();
    if (this.#at < this.#text.length) this.#fail('"and", "or" or EOF');
  }

  #and(): Filter {
    let left = this.#not();
    while (this.#word('and')) left = { kind: 'and', left, right: this.#not() };
    return left;
  }

  #not(): Filter {
    if (this.#word('not')) return { kind: 'not', of: this.#not() };
    if (this.#symbol('(')) {
      const inner = this.or();
      if (!this.#symbol(')')) this.#fail('")"');
      return inner;
    }
    return this.#word('any') ? this.#any() : this.#test();
  }

  #any(): Filter {
    const path = this.#selector();
    if (!this.#word('as')) this.#fail('"as"');
    const name = this.#identifier();
    if (!this.#symbol('{')) this.#fail('"{"');
    const of = this.or();
    if (!this.#symbol('}')) this.#fail('"}"');
    return { kind: 'any', path, name, of };
  }

  #test(): Filter {
    const path = this.#selector();
    if (this.#symbol('==')) return { kind: 'equals', path, value: this.#value() };
    if (this.#symbol('!=')) return { kind: 'not', of: { kind: 'equals', path, value: this.#value() } };
    if (this.#word('matches')) return { kind: 'matches', path, pattern: this.#pattern() };
    if (this.#word('not')) {
      if (!this.#word('matches')) this.#fail('"matches"');
      return { kind: 'not', of: { kind: 'matches', path, pattern: this.#pattern() } };
    }
    return this.#fail('"!=", "==", "matches" or "not matches"');
  }

  #selector(): string[] {
    const path = [this.#identifier()];
    for (;;) {
      if (this.#text.startsWith('.', this.#at)) {
        this.#at += 1;
        path.push(this.#identifier());
      } else if (this.#text.startsWith('[', this.#at)) {
        this.#at += 1;
        path.push(this.#quoted() ?? this.#fail('"\\"" or "`"'));
        if (!this.#symbol(']')) this.#fail('"]"');
      } else return path;
    }
  }

  #identifier(): string {
    this.#blanks();
    const [found] = /^[A-Za-z][A-Za-z0-9_/]*/.exec(this.#text.slice(this.#at)) ?? [];
    if (found === undefined) return this.#fail('"(", "any", "not", "\\"" or [a-zA-Z]');
    this.#at += found.length;
    return found;
  }

  #value(): string {
    this.#blanks();
    const quoted = this.#quoted();
    if (quoted !== undefined) return quoted;
    const [bare] = /^(-?(0|[1-9]\d*)(\.\d+)?|[A-Za-z][A-Za-z0-9_/]*)/.exec(this.#text.slice(this.#at)) ?? [];
    if (bare === undefined) return this.#fail(VALUE_EXPECTED);
    this.#at += bare.length;
    return bare;
  }

  #pattern(): RegExp {
    const source = this.#value();
    try {
      return new RegExp(source, 'u');
    } catch (error) {
      const reason = error instanceof Error ? error.message : '';
      throw unreadable(`invalid regular expression ${JSON.stringify(source)}: ${reason}`);
    }
  }

  #quoted(): string | undefined {
    const rest = this.#text.slice(this.#at);
    const [found] = /^("(?:[^"\\]|\\.)*"|`[^`]*`)/.exec(rest) ?? [];
    if (found === undefined) return undefined;
    this.#at += found.length;
    if (found.startsWith('`')) return found.slice(1, -1);
    try {
      const value: unknown = JSON.parse(found);
      return typeof value === 'string' ? value : undefined;
    } catch {
      return this.#fail('a string as Go writes it');
    }
  }

  #word(word: string): boolean {
    this.#blanks();
    if (!new RegExp(`^${word}(?![A-Za-z0-9_])`).test(this.#text.slice(this.#at))) return false;
    this.#at += word.length;
    return true;
  }

  #symbol(symbol: string): boolean {
    this.#blanks();
    if (!this.#text.startsWith(symbol, this.#at)) return false;
    this.#at += symbol.length;
    return true;
  }

  #blanks(): void {
    while (/^[ \t\r\n]/.test(this.#text.slice(this.#at, this.#at + 1))) this.#at += 1;
  }

  #fail(expected: string): never {
    const before = this.#text.slice(0, this.#at).split('\n');
    const column = (before.at(-1)?.length ?? 0) + 1;
    throw unreadable(`${before.length}:${column} (${this.#at}): no match found, expected: ${expected}`);
  }
}

function unreadable(problem: string): HttpFailure {
  return new HttpFailure(
    400,
    `failed to create result paginator: failed to read filter expression: ${problem}`,
  );
}
