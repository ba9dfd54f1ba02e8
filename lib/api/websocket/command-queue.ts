import type { ExecMessage } from '../../protocol/websocket.js';

/** What may wait on one session, and what on all of the service together. */
const MAX_COMMANDS = 16;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_BYTES_OF_ALL = 256 * 1024 * 1024;

/** The memory that commands of all sessions wait in. */
export class CommandRoom {
  #bytes = 0;

  /** False, and nothing taken, where there is no room. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > MAX_BYTES_OF_ALL) return false;
    this.#bytes += bytes;
    return true;
  }

  leave(bytes: number): void {
    this.#bytes -= bytes;
  }
}

interface Entry {
  readonly message: ExecMessage;
  readonly bytes: number;
}

/** Commands of one session that wait for their turn, in the order in which they came; bounded in number and size. */
export class CommandQueue {
  readonly #room: CommandRoom;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(room: CommandRoom) {
    this.#room = room;
  }

  has(id: string): boolean {
    return this.#entries.has(id);
  }

  /** Takes a command in; `bytes` is what it takes of the memory. Returns why not, where there is no room. */
  add(message: ExecMessage, bytes: number): string | undefined {
    if (this.#entries.size >= MAX_COMMANDS) {
      return `${MAX_COMMANDS} commands wait on this session already; send it again when one has ended`;
    }
    if (this.#bytes + bytes > MAX_BYTES) {
      return `the commands that wait on this session take ${MAX_BYTES} bytes; send it again when one has ended`;
    }
    if (!this.#room.take(bytes)) {
      return 'the commands that wait on all sessions of this service take all the room; send it again later';
    }
    this.#entries.set(message.id, { message, bytes });
    this.#bytes += bytes;
    return undefined;
  }

  /** Removes a command; undefined where none of this id waits. */
  remove(id: string): ExecMessage | undefined {
    const entry = this.#entries.get(id);
    if (!entry) return undefined;
    this.#entries.delete(id);
    this.#bytes -= entry.bytes;
    this.#room.leave(entry.bytes);
    return entry.message;
  }

  /** Removes the one that waits longest. */
  shift(): ExecMessage | undefined {
    for (const id of this.#entries.keys()) return this.remove(id);
    return undefined;
  }

  clear(): void {
    while (this.shift());
  }
}
