import { allocationId } from '../../../lib/base/ids.js';
import type { ExecOptions, ExecSession } from '../../../lib/nomad/api.js';
import type { NomadClient } from '../../../lib/nomad/client.js';
import { FakeClock } from '../../support/fake-clock.js';
import { nomadClient } from '../../support/nomad-client.js';
import type { ScriptedExec } from '../../support/scripted-exec.js';
import { ScriptedNomad } from '../../support/scripted-nomad.js';

/** What tests of exec sockets share: a scripted server, a client of it, and a command. */
export const OPTIONS: ExecOptions = {
  allocationId: allocationId('14c2c654-83c6-7954-2a6f-0407b0cffbbd'),
  task: 'default-task',
  command: ['sh', '-c', 'echo "ü & =?"'],
  tty: false,
};

/** Collects the output of one stream. */
export function collect(session: ExecSession): { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' };
  session.onOutput((stream, chunk) => {
    output[stream] += chunk.toString('latin1');
  });
  return output;
}

export class ExecBench {
  readonly clock = new FakeClock();
  readonly nomad: ScriptedNomad;
  readonly client: NomadClient;

  private constructor(nomad: ScriptedNomad) {
    this.nomad = nomad;
    const scope = { token: 'a-token', namespace: 'runners', region: 'eu' };
    this.client = nomadClient(nomad.address, { clock: this.clock, ...scope });
  }

  static async open(): Promise<ExecBench> {
    return new ExecBench(await ScriptedNomad.start());
  }

  async close(): Promise<void> {
    await this.client.stop();
    await this.nomad.stop();
  }

  /** Opens an exec; resolves with both sides of it. */
  async exec(options: Partial<ExecOptions> = {}): Promise<[ExecSession, ScriptedExec]> {
    return await Promise.all([this.client.openExec({ ...OPTIONS, ...options }), this.nomad.nextExec()]);
  }
}
