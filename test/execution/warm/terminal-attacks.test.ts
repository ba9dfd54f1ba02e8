import { expect } from 'chai';
import { SessionClient } from '../../support/session-client.js';
import { eventually } from '../../support/waiting.js';
import type { Runner } from './place.js';
import { exit, PATHS, PATIENCE_MS, Place } from './place.js';

/** Runs Python code; the file is given by its text. */
function python(code: string): string {
  return `python3 - <<'END'\n${code}\nEND`;
}

/** What is typed and would run a command, were it taken for a request. */
const REQUEST_SHAPED = [
  '1 13 -\nid >/tmp/pwned\n',
  "1 1 0\nserai_c='id >/tmp/pwned'; serai_tool=none\n",
  '1 0 14\nid >/tmp/pwned\n',
  'id >/tmp/pwned\n',
];
const NOT_PWNED = 'ls /tmp/pwned 2>/dev/null; echo end';

/** Shows what is left in the input of the terminal, and how the terminal is set. */
const SHOW_INPUT = 'stty -icanon min 0 time 0; cat; stty icanon; echo clean';
const SHOW_TERMINAL = 'stty -a; stty size; : <>/dev/tty && echo open >/proc/self/fd/1';

for (const path of PATHS) {
  describe(`What a program does to its terminal, with warm sessions ${path}`, function () {
    this.timeout(180_000);
    let place: Place;
    let runner: Runner;

    before(async function () {
      place = await Place.open(this, { path });
      runner = await place.claim();
    });
    after(() => place?.[Symbol.asyncDispose]());

    it('ends by a key of its client, with its code, also where that comes at once', async () => {
      for (let round = 0; round < 10; round += 1) {
        const [key, code] = round % 2 === 0 ? ['\x03', 130] : ['\x1c', 131];
        const before = await runner.loop();
        const { end } = await runner.run('sleep 600', {}, ({ socket }) => socket.send(key));
        expect(end).to.deep.equal(exit(code));
        await runner.expectNext(before, 'reused');
      }
    });

    it('reads what is typed at once, and the end of input', async () => {
      const first = await runner.run('read a; echo "got $a"', {}, ({ socket }) => socket.send('now\n'));
      expect(first.stdout).to.match(/(^|\n)got now\r\n$/);
      const second = await runner.run('cat', {}, (client) => {
        client.socket.send('hi\n');
        client.onMessage = () => {
          if (client.text('stdout') === 'hi\r\nhi\r\n') client.socket.send('\x04');
        };
      });
      expect([second.stdout, second.end]).to.deep.equal(['hi\r\nhi\r\n', exit(0)]);
      await runner.expectOrder();
    });

    it('leaves no input to the next command, whenever it was typed', async () => {
      for (let round = 0; round < 30; round += 1) {
        const before = await runner.loop();
        const code = round % 100;
        const command = round % 3 === 0 ? `exit ${code}` : `sleep 0.0${round % 10}; exit ${code}`;
        const { end } = await runner.run(command, {}, async ({ socket }) => {
          for (let piece = 0; piece < 6; piece += 1) {
            socket.send(piece % 2 === 0 ? `left over ${round}\n` : `and more ${round}`);
            for (let turns = (round * 7 + piece * 3) % 40; turns > 0; turns -= 1) {
              await new Promise((resolve) => setImmediate(resolve));
            }
          }
        });
        expect(end).to.deep.equal(exit(code));
        expect((await runner.run(SHOW_INPUT)).stdout).to.equal('clean\r\n');
        await runner.expectNext(before, 'reused');
      }
    });

    it('gets no command run by typing what looks like a request', async () => {
      for (const typed of REQUEST_SHAPED) {
        const before = await runner.loop();
        await runner.run('sleep 0.2', {}, ({ socket }) => socket.send(typed));
        expect((await runner.run(NOT_PWNED)).stdout).to.equal('end\r\n');
        await runner.expectNext(before, 'reused');
      }
    });

    it('gets no command run by pushing input into its terminal', async () => {
      for (const typed of REQUEST_SHAPED) {
        const before = await runner.loop();
        const push = `
import fcntl, termios
for c in ${JSON.stringify(typed)}:
    try: fcntl.ioctl(0, termios.TIOCSTI, c.encode())
    except OSError: pass`;
        // The code comes by an argument, so the terminal stays its standard input.
        const { end } = await runner.run('python3 -c "$CODE"; exit 6', { environment: { CODE: push } });
        expect(end).to.deep.equal(exit(6));
        expect((await runner.run(NOT_PWNED)).stdout).to.equal('end\r\n');
        await runner.expectNext(before, 'reused');
      }
    });

    it('has its terminal answer when it is over, and nobody reads that', async () => {
      const before = await runner.loop();
      await runner.run("printf '\\033[6n'", {}, (client) => {
        client.onMessage = () => client.socket.send('\x1b[1;1R');
      });
      expect((await runner.run(SHOW_INPUT)).stdout).to.equal('clean\r\n');
      await runner.expectNext(before, 'reused');
    });

    const CHANGES = {
      'upper-case output': 'stty olcuc',
      'raw mode without an echo': 'stty raw -echo',
      'another size': 'stty rows 3 cols 7',
      'other keys': 'stty intr a eof b erase c; stty -isig',
      'a slow line': 'stty 300',
      'tabs and delays': 'stty tab3 onocr ofill ocrnl parenb cs7 istrip 2>/dev/null; true',
      'a terminal of its own': python('import fcntl, termios; fcntl.ioctl(1, termios.TIOCEXCL)'),
      'non-blocking streams': python(
        'import fcntl, os\nfor d in 0, 1, 2: fcntl.fcntl(d, fcntl.F_SETFL, fcntl.fcntl(d, fcntl.F_GETFL) | os.O_NONBLOCK)',
      ),
      'a non-blocking terminal': python(
        'import fcntl, os\nd = os.open("/dev/tty", os.O_RDWR | os.O_NONBLOCK); fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)',
      ),
      'another foreground group': python(
        'import os, signal\nsignal.signal(signal.SIGTTOU, signal.SIG_IGN); p = os.fork()\nif p == 0: os.setpgid(0, 0); os.tcsetpgrp(1, os.getpid()); os._exit(0)\nos.waitpid(p, 0)',
      ),
    };
    for (const [name, command] of Object.entries(CHANGES)) {
      it(`changes nothing of its terminal for the next one: ${name}`, async () => {
        const untouched = (await runner.run(SHOW_TERMINAL)).stdout;
        const { stderr, end } = await runner.run(`${command}\nexit 3`);
        expect([stderr, end]).to.deep.equal(['', exit(3)]);
        expect((await runner.run(SHOW_TERMINAL)).stdout).to.equal(untouched);
        const typed = await runner.run('head -n 1; head -c 300000 /dev/zero | tr "\\0" x', {}, ({ socket }) =>
          socket.send('typed\n'),
        );
        expect(typed.stdout.replaceAll('typed\r\n', '') === 'x'.repeat(300_000)).to.equal(true);
        await runner.expectOrder();
      });
    }

    it('ends with its code although its client stopped the output', async () => {
      const { end } = await runner.run('read x; exit 9', {}, ({ socket }) => socket.send('\x13\n'));
      expect(end).to.deep.equal(exit(9));
      await runner.expectOrder();
      await runner.expectOrder();
    });

    it('meets the size that its own client sets, and the next one meets the size of before', async () => {
      const untouched = (await runner.run('stty size')).stdout;
      const before = await runner.loop();
      await place.untilWarm();
      const session = await SessionClient.open(place.client.base, runner.id);
      session.exec('a', 'until [ "$(stty size)" = "33 111" ]; do sleep 0.01; done; read x; stty size');
      await eventually('the start', () => session.of('a').length > 0, PATIENCE_MS);
      session.send({ type: 'resize', id: 'a', cols: 111, rows: 33 });
      session.send({ type: 'stdin', id: 'a', data: '\n' });
      await session.end('a');
      expect(session.text('a')).to.equal('\r\n33 111\r\n');
      session.client.socket.terminate();
      expect((await runner.run('stty size')).stdout).to.equal(untouched);
      await runner.expectNext(before, 'reused');
    });
  });
}
