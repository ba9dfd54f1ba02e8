import { createHash } from 'node:crypto';
import { expect } from 'chai';
import type { TaskHandle } from '../../lib/dev-agent/driver.js';
import { eventually } from '../support/waiting.js';
import { Conversation, SandboxBench, sh } from './support/sandbox.js';

describe('SandboxDriver: execs', () => {
  let bench: SandboxBench;
  let task: TaskHandle;

  before(async function () {
    bench = await SandboxBench.open(this);
    task = await bench.start({ environment: { NOMAD_JOB_ID: 'a job', QUOTED: 'a "b" $c\nd', '-e': 'x' } });
  });
  after(() => bench?.close());

  it('tells exit codes exactly', async () => {
    for (const code of [0, 1, 3, 126, 127, 137, 255]) {
      expect((await sh(task, `exit ${code}`)).exitCode).to.equal(code);
    }
    expect(await sh(task, 'kill -9 $$')).to.deep.equal({ exitCode: 137, stdout: '', stderr: '' });
    expect((await sh(task, 'kill -TERM $$')).exitCode).to.equal(143);
  });

  it('keeps standard output and error apart', async () => {
    const told = await sh(task, 'echo out; echo err >&2; exit 3');
    expect(told).to.deep.equal({ exitCode: 3, stdout: 'out\n', stderr: 'err\n' });
  });

  it('gives programs pipes that they can open by name, whoever they are', async () => {
    const write =
      'echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin; test -p /dev/fd/0 && echo pipe';
    const command = ['setpriv', '--reuid=user', '--regid=user', '--clear-groups', 'sh', '-c', write];
    const conversation = await Conversation.open(task, command);
    conversation.say('in\n');
    conversation.exec.closeStdin();
    const told = await conversation.end();
    expect(told).to.deep.equal({ exitCode: 0, stdout: 'out\nin\npipe\n', stderr: 'err\n' });
  });

  it('tells a program that writes what nobody will read', async () => {
    const conversation = await Conversation.open(task, [
      'sh',
      '-c',
      'exec <&-; echo closed; read -r _ < /dev/tty; kill -0 $$',
    ]);
    conversation.say('x'.repeat(200_000));
    await conversation.sees(/closed/);
    conversation.exec.closeStdin();
    expect((await conversation.end()).exitCode).to.equal(0);
  });

  it('gives programs a clean environment and nothing that the agent has open', async () => {
    const terminal = await Conversation.open(task, ['cat'], true);
    const environment = await Conversation.open(task, ['env', '-0']);
    environment.exec.closeStdin();
    expect((await environment.end()).stdout.split('\0')).to.have.members([
      'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      'HOME=/root',
      'NOMAD_JOB_ID=a job',
      'QUOTED=a "b" $c\nd',
      '-e=x',
      '',
    ]);
    expect((await sh(task, 'ls /proc/self/fd | wc -l')).stdout).to.equal('4\n');
    const init = await sh(task, 'tr "\\0" "\\n" < /proc/1/environ | cut -d= -f1 | sort');
    expect(init.stdout).to.equal('LC_ALL\nPATH\nPWD\n');
    terminal.say('\x04');
    await terminal.end();
  });

  it('says of a command that does not exist that it was not found', async () => {
    const attempt = (command: string[]): Promise<string> =>
      task.exec({ command, tty: false }).then(
        () => 'started',
        (error: Error) => error.message,
      );
    expect(await attempt(['no-such-command'])).to.equal(
      'exec: "no-such-command": executable file not found in $PATH',
    );
    expect(await attempt(['/no/such'])).to.equal('fork/exec /no/such: no such file or directory');
    expect(await attempt(['/etc/passwd'])).to.equal('fork/exec /etc/passwd: permission denied');
    expect(await attempt(['./tool'])).to.equal('fork/exec ./tool: no such file or directory');
    await sh(task, 'printf "#!/bin/sh\\necho tool" > tool; chmod +x tool; ln -s /workspace/tool /opt/mine');
    expect(await attempt(['./tool'])).to.equal('started');
    expect(await attempt(['/opt/mine'])).to.equal('started');
  });

  it('waits for the end of input as raw_exec does', async () => {
    const conversation = await Conversation.open(task, ['cat']);
    conversation.say('one\n');
    await conversation.sees(/one\n/);
    conversation.say('two\n');
    conversation.exec.closeStdin();
    expect(await conversation.end()).to.deep.equal({ exitCode: 0, stdout: 'one\ntwo\n', stderr: '' });
  });

  it('loses no output, however large and however slowly it is read', async () => {
    const hash = createHash('sha1');
    const exec = await task.exec({ command: ['seq', '1', '300000'], tty: false });
    exec.closeStdin();
    let chunks = 0;
    exec.onOutput((_, chunk) => {
      hash.update(chunk);
      chunks += 1;
      if (chunks % 4 !== 0) return;
      exec.pause();
      setTimeout(() => exec.resume(), 1);
    });
    expect(await exec.exitCode).to.equal(0);
    const wanted = createHash('sha1').update(
      Array.from({ length: 300_000 }, (_, i) => `${i + 1}\n`).join(''),
    );
    expect(hash.digest('hex')).to.equal(wanted.digest('hex'));
  });

  it('holds a program back while nobody reads', async () => {
    const conversation = await Conversation.open(task, [
      'sh',
      '-c',
      'yes | head -c 3000000; touch /tmp/written',
    ]);
    conversation.exec.closeStdin();
    conversation.exec.pause();
    await sh(task, 'for i in 1 2 3 4 5; do sleep 0.05; done');
    expect((await sh(task, 'ls /tmp/written')).exitCode).not.to.equal(0);
    conversation.exec.resume();
    expect((await conversation.end()).stdout).to.have.length(3_000_000);
    expect((await sh(task, 'ls /tmp/written')).exitCode).to.equal(0);
  });

  it('gives a program with a terminal the control of it', async () => {
    const conversation = await Conversation.open(
      task,
      [
        'sh',
        '-c',
        'stty size; trap "stty size < /dev/tty" WINCH; test -t 0 && ps -o pid=,sid=,tpgid= -p $$; echo ready; cat',
      ],
      true,
    );
    await conversation.sees(/ready\r\n/);
    const [, pid, session, foreground] = /(\d+) +(\d+) +(\d+)\r/.exec(conversation.stdout) ?? [];
    expect(session).to.equal(pid);
    expect(foreground).to.equal(pid);
    conversation.exec.resize(132, 43);
    conversation.say('typed\n');
    await conversation.sees(/typed\r\ntyped\r\n/);
    conversation.say('\x04');
    const { stdout, exitCode } = await conversation.end();
    expect(exitCode).to.equal(0);
    expect(stdout)
      .to.match(/^24 80\r\n/)
      .and.to.match(/43 132\r\n$/);
  });

  it('interrupts with Ctrl-C and stops with Ctrl-Z as a terminal does', async () => {
    const interrupted = await Conversation.open(task, ['sh', '-c', 'echo go; exec sleep 60'], true);
    await interrupted.sees(/go/);
    interrupted.say('\x03');
    expect(await interrupted.end()).to.deep.include({ exitCode: 130, stdout: 'go\r\n^C' });

    const shell = await Conversation.open(task, ['bash', '--norc', '-i'], true);
    await shell.sees(/# $/);
    shell.say('sleep 60\n');
    await shell.sees(/sleep 60\r\n/);
    await eventually(
      'sleep in the foreground',
      async () => (await sh(task, 'pgrep -f "^sleep 60"')).exitCode === 0,
    );
    shell.say('\x1a');
    await shell.sees(/Stopped[^]*# $/);
    shell.say('fg\n');
    await shell.sees(/fg\r\nsleep 60\r\n/);
    shell.say('\x03');
    await shell.sees(/fg[^]*\^C[^]*# $/);
    shell.say('exit 5\n');
    expect((await shell.end()).exitCode).to.equal(5);
  });

  it('reports the end of a program that stopped itself for a while', async () => {
    const stopped = await Conversation.open(task, ['sh', '-c', 'echo $$; kill -STOP $$; exit 4']);
    stopped.exec.closeStdin();
    await stopped.sees(/\d+\n/);
    const pid = stopped.stdout.trim();
    await eventually(
      'the stop',
      async () => (await sh(task, `grep -q "State:.T" /proc/${pid}/status`)).exitCode === 0,
    );
    await sh(task, `kill -CONT ${pid}`);
    expect((await stopped.end()).exitCode).to.equal(4);
  });

  it('lets a program signal its own group without harm to the exec', async () => {
    const told = await sh(task, 'trap "echo caught" TERM; kill -TERM 0; exit 6');
    expect(told).to.deep.include({ exitCode: 6, stdout: 'caught\n' });
  });

  it('lets a program live on when its client leaves', async () => {
    const left = await Conversation.open(task, [
      'sh',
      '-c',
      'while echo on; do echo x >> /tmp/alive; sleep 0.01; done',
    ]);
    await left.sees(/on/);
    left.exec.abandon();
    const size = async (): Promise<number> => Number((await sh(task, 'wc -c < /tmp/alive')).stdout);
    const before = await size();
    await eventually('more to be written', async () => (await size()) > before + 20);
  });
});
