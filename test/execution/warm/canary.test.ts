import { expect } from 'chai';
import type { DriverExec, TaskDriver, TaskHandle, TaskOptions } from '../../../lib/dev-agent/driver.js';
import { createDriver } from '../../../lib/dev-agent/drivers.js';
import { systemClock } from '../../../lib/base/clock.js';
import { silentLogger } from '../../../lib/base/log.js';
import { eventually } from '../../support/waiting.js';
import { exit, PATIENCE_MS, Place } from './place.js';

/** A driver whose image is that of the sandbox, changed by a script of root before a task counts as started. */
class ImageDriver implements TaskDriver {
  readonly name = 'sandbox';
  script: string;
  starts = 0;
  readonly #driver = createDriver('sandbox', { clock: systemClock, log: silentLogger });

  constructor(script: string) {
    this.script = script;
  }

  check(): Promise<void> {
    return this.#driver.check();
  }

  async startTask(options: TaskOptions): Promise<TaskHandle> {
    this.starts += 1;
    const task = await this.#driver.startTask(options);
    const change: DriverExec = await task.exec({ command: ['sh', '-c', this.script], tty: false });
    change.onOutput(() => undefined);
    change.closeStdin();
    await change.exitCode;
    return task;
  }

  stop(): Promise<void> {
    return this.#driver.stop();
  }
}

/** Takes programs out of an image, wherever they are. */
function without(...tools: string[]): string {
  return `for t in ${tools.join(' ')}; do rm -f /usr/bin/$t /usr/sbin/$t /usr/local/bin/$t; done`;
}

const BROKEN = "rm /usr/bin/bash; printf '#!/bin/sh\\nexit 3\\n' >/usr/bin/bash; chmod 755 /usr/bin/bash";

/** The sandbox itself enters a task by setpriv, so that stays for everything but a change of user. */
const NO_REUID = [
  'cd /usr/bin && mv setpriv setpriv.real',
  `printf '#!/bin/sh\\ncase "$*" in *reuid*) exit 1 ;; esac\\nexec setpriv.real "$@"\\n' >setpriv`,
  'chmod 755 setpriv',
].join('; ');

describe('Runners that are tried before anybody uses them', function () {
  this.timeout(180_000);

  const reason = async (place: Place): Promise<string | undefined> =>
    (await place.client.statistics())?.reason;

  it('are replaced, and say why, where commands do not run in them, until they do', async function () {
    const driver = new ImageDriver(BROKEN);
    await using place = await Place.open(this, { path: 'on', driver });
    await eventually('the reason', async () => (await reason(place)) !== undefined, PATIENCE_MS);
    expect(await reason(place)).to.match(/commands do not run in it.*exit code 3/);
    await eventually('a replacement', () => driver.starts > 1, PATIENCE_MS);
    driver.script = 'true';
    const isFit = async (): Promise<boolean> => (await reason(place)) === undefined;
    await eventually('the environment to be fit', isFit, PATIENCE_MS);
    const runner = await place.claim();
    expect((await runner.run('exit 4')).end).to.deep.equal(exit(4));
  });

  it('take the cold path, and are healthy, where they have no stty', async function () {
    await using place = await Place.open(this, { path: 'on', driver: new ImageDriver(without('stty')) });
    const id = await place.client.claim();
    const loops: string[] = [];
    for (let i = 0; i < 3; i += 1) {
      const client = await place.client.run(id, `echo $PPID; exit ${i}`);
      expect(client.messages.at(-1)).to.deep.equal(exit(i));
      loops.push(client.text('stdout'));
    }
    expect(new Set(loops).size).to.equal(3);
    expect(await reason(place)).to.equal(undefined);
    expect(place.complaints).to.deep.equal([]);
  });

  it('say that they cannot drop privileges before anybody runs a command', async function () {
    const script = `${without('runuser', 'su', 'su-exec', 'gosu')}; ${NO_REUID}`;
    await using place = await Place.open(this, { path: 'on', driver: new ImageDriver(script) });
    await eventually('the reason', async () => (await reason(place)) !== undefined, PATIENCE_MS);
    expect(await reason(place)).to.match(/privilege|user/);
    const client = await place.client.run(await place.client.claim(), 'id -u');
    expect([client.text('stdout'), client.messages.at(-1)?.type]).to.deep.equal(['', 'error']);
  });
});
