import { ServiceError } from '../../base/errors.js';

/**
 * Decodes base64 as it stands inside a JSON text, chunk by chunk: escapes are resolved first (encoders write `\/` and
 * `\u002B`), line ends are skipped as in the peer, anything else that is no padded base64 is refused.
 */
export class Base64Decoder {
  /** What the messages call the text. */
  readonly #what: string;
  #rest = '';
  #padded = false;

  constructor(what: string) {
    this.#what = what;
  }

  /** The bytes that are whole with this chunk. Throws INVALID_REQUEST. The chunk may be used again afterwards. */
  push(chunk: Uint8Array): Buffer {
    return Buffer.from(this.#next(chunk), 'base64');
  }

  /** How many bytes `push` would give: for those who want to know the length first. */
  count(chunk: Uint8Array): number {
    const text = this.#next(chunk);
    const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
    return (text.length / 4) * 3 - padding;
  }

  /** Whole groups of four letters, checked. */
  #next(chunk: Uint8Array): string {
    const text =
      this.#rest + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1');
    const open = /\\(?:u[0-9a-fA-F]{0,3})?$/.exec(text)?.[0] ?? '';
    const whole = this.#unescape(text.slice(0, text.length - open.length));
    const usable = whole.length - (whole.length % 4);
    this.#rest = whole.slice(usable) + open;
    return this.#checked(whole.slice(0, usable));
  }

  /** Throws INVALID_REQUEST where the text broke off. */
  end(): void {
    if (this.#rest !== '') throw this.#invalid();
  }

  #unescape(text: string): string {
    const plain = text.includes('\\')
      ? text.replace(/\\(?:u([0-9a-fA-F]{4})|([/nr]))/g, (_all, code?: string, letter?: string) =>
          code === undefined ? (letter === '/' ? '/' : '') : String.fromCharCode(parseInt(code, 16)),
        )
      : text;
    return plain.replace(/[\r\n]/g, '');
  }

  #checked(text: string): string {
    if (text === '') return text;
    if (this.#padded || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw this.#invalid();
    this.#padded = text.endsWith('=');
    return text;
  }

  #invalid(): ServiceError {
    return new ServiceError('INVALID_REQUEST', `${this.#what} must be padded base64`);
  }
}
