import { closeSync, constants, fchmodSync, fstatSync, openSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import type { ExecStreams } from './pipe-exec.js';
import { Dialogue } from './dialogue.js';

/**
 * Pipes for the standard streams of programs.
 *
 * Node gives its children sockets instead. A socket cannot be opened by a path, so that `echo oops > /dev/stderr` fails
 * where it works in a container, and bash takes a program whose input is one for a remote login and reads `~/.bashrc`.
 * Node cannot make pipes, but a shell makes one for every here-document, and what another process has open can be
 * opened by /proc. So a shell makes some in advance, the agent opens both ends of each, and the shell ends.
 */
export interface PipeSet {
  /** The agent's ends. */
  readonly streams: ExecStreams;
  /** The program's ends, as the `stdio` of spawn. */
  readonly stdio: [stdin: number, stdout: number, stderr: number];
  /** Closes the program's ends here, once it has them or will not. */
  closeChildEnds(): void;
  /** Closes the agent's ends. */
  destroy(): void;
}

/** Both ends of a pipe. The one that becomes a stream does not wait from then on; the program's does. */
interface Pipe {
  readonly read: number;
  readonly write: number;
}

const PER_SET = 3;

/** Shells know descriptors of one digit only; 0, 1 and 2 are in use. */
const DESCRIPTORS = [3, 4, 5, 6, 7, 8];

/** The documents hold one character: for an empty one some shells open /dev/null. */
const SCRIPT = `exec ${DESCRIPTORS.map((descriptor) => `${descriptor}<<E`).join(' ')}
${'\nE\n'.repeat(DESCRIPTORS.length)}
echo made
read -r _
`;

export class PipeMaker {
  readonly #ready: Pipe[] = [];
  #making: Promise<void> | undefined;

  /** Rejects where the shell of this machine makes no pipes. */
  async take(): Promise<PipeSet> {
    while (this.#ready.length < PER_SET) await this.#make();
    const [input, output, error] = this.#ready.splice(0, PER_SET);
    if (!input || !output || !error) throw new Error('no pipes are left');
    // What fails here fails again for the next one, who then waits for it.
    if (this.#ready.length < PER_SET) this.#make().catch(() => undefined);
    return openSet(input, output, error);
  }

  /** Closes what nobody took. */
  async close(): Promise<void> {
    await this.#making?.catch(() => undefined); // told to whoever waited for it
    for (const pipe of this.#ready.splice(0)) closePipe(pipe);
  }

  #make(): Promise<void> {
    this.#making ??= this.#makeSome().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  async #makeSome(): Promise<void> {
    const dialogue = await Dialogue.open(['sh', '-c', SCRIPT]);
    try {
      await dialogue.expect('made');
      for (const descriptor of DESCRIPTORS)
        this.#ready.push(openPipe(`/proc/${dialogue.pid}/fd/${descriptor}`));
    } finally {
      await dialogue.close();
    }
  }
}

function openPipe(file: string): Pipe {
  const read = openSync(file, constants.O_RDONLY);
  try {
    if (!fstatSync(read).isFIFO()) throw new Error('sh makes files, not pipes, of here-documents');
    readSync(read, Buffer.alloc(1));
    // Programs change their user and still open their standard streams by name.
    fchmodSync(read, 0o666);
    return { read, write: openSync(file, constants.O_WRONLY) };
  } catch (error) {
    closeSync(read);
    throw error;
  }
}

function closePipe({ read, write }: Pipe): void {
  closeSync(read);
  closeSync(write);
}

function openSet(input: Pipe, output: Pipe, error: Pipe): PipeSet {
  const streams = {
    stdin: new Socket({ fd: input.write, readable: false, writable: true }),
    stdout: new Socket({ fd: output.read, readable: true, writable: false }),
    stderr: new Socket({ fd: error.read, readable: true, writable: false }),
  };
  const stdio: PipeSet['stdio'] = [input.read, output.write, error.write];
  return {
    streams,
    stdio,
    closeChildEnds: () => stdio.forEach((descriptor) => closeSync(descriptor)),
    destroy: () => Object.values(streams).forEach((stream) => stream.destroy()),
  };
}
