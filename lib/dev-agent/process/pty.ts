import { closeSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { ReadStream } from 'node:tty';
import { PtyInput } from './pty-input.js';

/**
 * Pseudo terminals from the prebuilt binary of `@lydell/node-pty`, below its JavaScript, which closes a terminal 200 ms
 * after its process ended and so loses what a slow reader has not read by then.
 *
 * Here nothing is lost: the slave side stays open until the process has ended, so the master gives no early end; then
 * `finish` reads until the kernel has no more, which on Linux is certain, since a read of the master first moves over
 * what is still under way from the slave.
 */
export interface Pty {
  /** Path of the slave, for the process to open. */
  readonly slavePath: string;
  /** Output of the terminal. */
  readonly stream: ReadStream;
  readonly input: PtyInput;
  resize(columns: number, rows: number): void;
  /** Reads what is left once the process has ended, and closes both sides. */
  finish(): Buffer;
  /** Closes both sides, whatever is left. */
  close(): void;
}

interface NativePty {
  readonly open: (columns: number, rows: number) => { master: number; slave: number; pty: string };
  readonly resize: (fd: number, columns: number, rows: number) => void;
}

const require = createRequire(import.meta.url);
let loaded: NativePty | undefined;

/** The binary, loaded when the first terminal is opened. Throws where there is none for this machine. */
function native(): NativePty {
  if (loaded) return loaded;
  const { requireBinary } = require('@lydell/node-pty/requireBinary.js') as {
    requireBinary: (file: string) => NativePty;
  };
  const binary = requireBinary('pty.node');
  if (typeof binary.open !== 'function' || typeof binary.resize !== 'function') {
    throw new Error('the pty binary lacks open and resize');
  }
  loaded = binary;
  return binary;
}

/** Throws, with a sentence for people, where terminals cannot be opened on this machine. */
export function checkPty(): void {
  openPty(80, 24).close();
}

const CHUNK_BYTES = 65_536;

/** Opens a terminal. Whoever opens it closes it, by `finish` or `close`. */
export function openPty(columns: number, rows: number): Pty {
  const { open, resize } = native();
  const { master, slave, pty } = open(columns, rows);
  const stream = new ReadStream(master);
  const input = new PtyInput(master);
  let isOpen = true;
  stream.on('close', () => {
    isOpen = false;
    input.close();
  });
  // EIO is how the end of a terminal shows; what came before it was delivered.
  stream.on('error', () => undefined);

  let slaveIsOpen = true;
  const closeSlave = (): void => {
    if (slaveIsOpen) closeSync(slave);
    slaveIsOpen = false;
  };
  const closeMaster = (): void => {
    isOpen = false;
    input.close();
    stream.destroy();
  };
  return {
    slavePath: pty,
    stream,
    input,
    resize: (newColumns, newRows) => {
      if (isOpen) resize(master, newColumns, newRows);
    },
    finish: () => {
      closeSlave();
      const left = isOpen ? [...buffered(stream), ...readAll(master)] : [];
      closeMaster();
      return Buffer.concat(left);
    },
    close: () => {
      closeSlave();
      closeMaster();
    },
  };
}

/** What the stream has read and not delivered. */
function buffered(stream: ReadStream): Buffer[] {
  stream.pause();
  const chunks: Buffer[] = [];
  for (;;) {
    const chunk: unknown = stream.read();
    if (!Buffer.isBuffer(chunk)) return chunks;
    chunks.push(chunk);
  }
}

/** Everything that the terminal still holds. */
function readAll(master: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (;;) {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    let size: number;
    try {
      size = readSync(master, chunk, 0, CHUNK_BYTES, null);
    } catch {
      return chunks; // EAGAIN: nothing is left, though another process holds the slave; EIO: nobody does
    }
    if (size === 0) return chunks;
    chunks.push(chunk.subarray(0, size));
  }
}
