/**
 * Follows the frames of a WebSocket in the direction from the server, without touching them (RFC 6455, 5.2).
 *
 *   head (2 to 10 bytes) ──▶ payload ──▶ head …      between two messages nothing of either is missing
 *
 * So a relay knows where it may put a message of its own, and what the last messages said: short texts are told, long
 * ones (output) are not kept. Frames of servers are not masked; one that is ends the following, and no place is safe.
 */
const FIN = 0x80;
const OPCODE = 0x0f;
const TEXT = 1;
const CLOSE = 8;
const MASK = 0x80;
const LENGTH = 0x7f;
const LENGTH_16 = 126;
/** Longer texts are output. */
const KEPT_BYTES = 4096;

export class ServerFrames {
  readonly #onText: (text: string) => void;
  readonly #head = Buffer.alloc(10);
  #headBytes = 0;
  #left = 0;
  #kept: Buffer[] | undefined;
  #isInMessage = false;
  #isLost = false;
  #hasClosed = false;

  /** `onText` gets each text message that is short and whole in one frame. */
  constructor(onText: (text: string) => void) {
    this.#onText = onText;
  }

  /** True where the next byte begins a message. */
  get isBetween(): boolean {
    return !this.#isLost && !this.#isInMessage && this.#headBytes === 0;
  }

  /** True once the server's close frame has begun. */
  get hasClosed(): boolean {
    return this.#hasClosed;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && !this.#isLost) {
      if (this.#left > 0) {
        const end = Math.min(chunk.length, at + this.#left);
        this.#kept?.push(Buffer.from(chunk.subarray(at, end)));
        this.#left -= end - at;
        at = end;
        if (this.#left === 0) this.#endFrame();
      } else {
        this.#head[this.#headBytes] = chunk[at] ?? 0;
        this.#headBytes += 1;
        at += 1;
        if (this.#headBytes >= headLength(this.#head, this.#headBytes)) this.#beginFrame();
      }
    }
  }

  #beginFrame(): void {
    const [first = 0, second = 0] = this.#head;
    const opcode = first & OPCODE;
    if ((second & MASK) !== 0) {
      this.#isLost = true;
      return;
    }
    if (opcode === CLOSE) this.#hasClosed = true;
    // Control frames may come between the frames of a message.
    const isControl = opcode >= CLOSE;
    if (!isControl) this.#isInMessage = (first & FIN) === 0;
    this.#left = payloadLength(this.#head);
    const isShortText = opcode === TEXT && (first & FIN) !== 0 && this.#left <= KEPT_BYTES;
    this.#kept = isShortText ? [] : undefined;
    if (this.#left === 0) this.#endFrame();
  }

  #endFrame(): void {
    this.#headBytes = 0;
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept) this.#onText(Buffer.concat(kept).toString('utf8'));
  }
}

function headLength(head: Buffer, known: number): number {
  if (known < 2) return 2;
  const length = (head[1] ?? 0) & LENGTH;
  if (length < LENGTH_16) return 2;
  return length === LENGTH_16 ? 4 : 10;
}

function payloadLength(head: Buffer): number {
  const length = (head[1] ?? 0) & LENGTH;
  if (length < LENGTH_16) return length;
  return length === LENGTH_16 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
}

/** A text message of a server, in one frame. */
export function textFrame(text: string): Buffer {
  const payload = Buffer.from(text, 'utf8');
  return Buffer.concat([head(TEXT, payload.length), payload]);
}

/** The close frame of a server. */
export function closeFrame(code: number): Buffer {
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  return Buffer.concat([head(CLOSE, payload.length), payload]);
}

function head(opcode: number, length: number): Buffer {
  if (length < LENGTH_16) return Buffer.from([FIN | opcode, length]);
  const extended = Buffer.alloc(4);
  extended[0] = FIN | opcode;
  extended[1] = LENGTH_16;
  extended.writeUInt16BE(length, 2);
  return extended;
}
