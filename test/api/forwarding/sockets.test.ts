import { connect } from 'node:net';
import { expect } from 'chai';
import { newExecutionId, replicaId, systemRandomness } from '../../../lib/base/ids.js';
import { ApiPair } from '../../support/api-pair.js';
import { SessionClient } from '../../support/session-client.js';
import { eventually } from '../../support/waiting.js';
import { upgradeStatus } from '../../support/upgrade-status.js';
import { SocketClient, UpgradeRefused } from '../../support/websocket-client.js';

/** Prepares a command by way of the other replica. */
async function prepare(pair: ApiPair): Promise<string> {
  const runnerId = await pair.claim();
  const prepared = await pair.near.send('POST', `/runners/${runnerId}/execute`, { command: 'true' });
  return (prepared.json as { websocketUrl: string }).websocketUrl;
}

describe('WebSockets of a runner of another replica', () => {
  it('carry an execution both ways to its end', async () => {
    await using pair = await ApiPair.open();
    const client = await SocketClient.open(await prepare(pair), { protocols: ['serai.v1'] });
    const execution = pair.far.executions.last;
    await execution.running;
    expect(client.socket.protocol).to.equal('serai.v1');
    client.socket.send(JSON.stringify({ type: 'stdin', data: 'héllo' }));
    client.socket.send(Buffer.alloc(300_000, 'x'));
    await eventually('the input', () => Buffer.concat(execution.input).length === 300_006);
    execution.sink.started();
    execution.sink.output('stdout', 'é'.repeat(200_000));
    execution.end({ kind: 'exited', exitCode: 3 });
    expect(await client.closed()).to.equal(1000);
    expect(client.text('stdout')).to.equal('é'.repeat(200_000));
    expect(client.messages.at(-1)).to.include({ type: 'exit', data: 3 });
    await eventually('both to be quiet', () => pair.nearCluster.listeners === 0);
  });

  it('carry a session', async () => {
    await using pair = await ApiPair.open();
    const session = await SessionClient.open(pair.near.base, await pair.claim());
    pair.far.executions.onPrepare = (execution) => execution.end({ kind: 'exited', exitCode: 0 });
    for (const id of ['1', '2']) {
      session.exec(id);
      expect(await session.end(id)).to.include({ type: 'exit', data: 0 });
    }
    session.client.socket.close();
    await session.closed();
  });

  it('do not carry the token of the client', async () => {
    const token = 'the-token-of-the-client';
    await using pair = await ApiPair.open(
      { settings: { SERAI_AUTH_TOKEN: token } },
      { settings: { SERAI_AUTH_TOKEN: 'another-token-over-there' } },
    );
    const runnerId = await pair.claim();
    const bearer = `bearer.${Buffer.from(token).toString('base64url')}`;
    const session = await SessionClient.open(pair.near.base, runnerId, { protocols: ['serai.v1', bearer] });
    expect(session.client.socket.protocol).to.equal('serai.v1');
    session.client.socket.close();
    await session.closed();
  });

  it('are refused in the words of the owner', async () => {
    await using pair = await ApiPair.open();
    const url = await prepare(pair);
    const unknown = url.replace(/executionID=.*/, 'executionID=nothing');
    const refused = await SocketClient.open(unknown).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(UpgradeRefused).and.to.include({ status: 404 });
    expect((refused as UpgradeRefused).body).to.include('there is no such execution');
    const client = await SocketClient.open(url);
    expect(await upgradeStatus(url, {})).to.equal(409);
    client.socket.terminate();
    await pair.far.executions.last.exit;
  });

  it('are not looked for where the replica that their id names is dead', async () => {
    await using pair = await ApiPair.open();
    const runnerId = await pair.claim();
    pair.near.runners.calls.length = 0;
    const ask = (name: string): Promise<number | undefined> => {
      const id = newExecutionId(systemRandomness, replicaId(name));
      return upgradeStatus(
        `${pair.near.base.replace('http', 'ws')}/runners/${runnerId}/websocket?executionID=${id}`,
        {},
      );
    };
    expect(await ask('dead')).to.equal(404);
    expect(await ask('near')).to.equal(404);
    expect(await ask('far')).to.equal(404);
    expect(pair.near.runners.calls).to.deep.equal([]);
    await pair.wire.close();
    expect(await ask('far')).to.equal(404);
    expect(pair.nearCluster.suspected).to.deep.equal(['far']);
  });

  it('are looked for at a replica that has started a moment ago, and once more where the connection was lost', async () => {
    await using pair = await ApiPair.open();
    const { near, nearCluster, farReplica, wire } = pair;
    const runnerId = await pair.claim();
    nearCluster.remove(farReplica.id);
    nearCluster.newcomers.set(farReplica.id, farReplica);
    wire.loseNext();
    const id = newExecutionId(systemRandomness, farReplica.id);
    const url = `${near.base.replace('http', 'ws')}/runners/${runnerId}/websocket?executionID=${id}`;
    expect(await upgradeStatus(url, {}), 'the word of the other').to.equal(404);
    expect(wire.made).to.equal(2);
  });

  it('end the program of a client that vanishes', async () => {
    await using pair = await ApiPair.open();
    const client = await SocketClient.open(await prepare(pair));
    const execution = pair.far.executions.last;
    await execution.running;
    client.socket.terminate();
    expect(await execution.exit).to.deep.equal({ kind: 'hang-up' });
  });

  it('end the program of a client that closes its half only', async () => {
    await using pair = await ApiPair.open();
    const url = new URL(await prepare(pair));
    const socket = connect(Number(url.port), url.hostname);
    socket.on('error', () => undefined);
    socket.write(
      [
        `GET ${url.pathname}${url.search} HTTP/1.1`,
        `Host: ${url.host}`,
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        '',
        '',
      ].join('\r\n'),
    );
    await pair.far.executions.last.running;
    socket.end();
    expect(await pair.far.executions.last.exit).to.deep.equal({ kind: 'hang-up' });
    socket.destroy();
  });

  it('slow the program down for a client that does not read', async () => {
    await using pair = await ApiPair.open();
    const client = await SocketClient.open(await prepare(pair));
    const { far } = pair;
    const execution = far.executions.last;
    await execution.running;
    client.socket.pause();
    execution.sink.started();
    const chunk = 'x'.repeat(1_000_000);
    let sent = 0;
    while (sent < 200 && execution.sink.output('stdout', chunk)) {
      sent += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
    // What both replicas and the kernel hold is bounded.
    expect(sent).to.be.lessThan(100);
    client.socket.resume();
    await execution.sink.drained();
    execution.end({ kind: 'exited', exitCode: 0 });
    await client.closed();
    expect(client.text('stdout').length).to.equal((sent + 1) * chunk.length);
  });

  it('get an error and an end when the owner is lost', async () => {
    await using pair = await ApiPair.open();
    const plain = await SocketClient.open(await prepare(pair));
    pair.far.executions.last.sink.started();
    await eventually('the start', () => plain.types.includes('start'));
    const session = await SessionClient.open(pair.near.base, await pair.claim());
    session.exec('a');
    await eventually('the command', () => pair.far.executions.prepared.size === 2);
    await pair.far.executions.last.running;
    pair.far.executions.last.sink.started();
    await eventually('the start', () => session.of('a').length === 1);
    pair.wire.cut();
    expect(await plain.closed()).to.equal(1000);
    expect(plain.messages.at(-1)).to.deep.equal({
      type: 'error',
      data: 'the replica that ran the command was lost',
    });
    expect(await session.closed()).to.equal(1012);
    expect(await session.end('a')).to.include({ type: 'error', id: 'a', oomKilled: false });
  });

  it('of a session end with 1012 where the runner was taken over, and with 1000 where it is gone', async () => {
    await using pair = await ApiPair.open();
    for (const [reason, code] of [
      ['taken-over', 1012],
      ['returned', 1000],
    ] as const) {
      const runnerId = await pair.claim();
      const sessions = [
        await SessionClient.open(pair.near.base, runnerId),
        await SessionClient.open(pair.far.base, runnerId),
      ];
      pair.far.runners.lose(runnerId, reason);
      expect(await Promise.all(sessions.map((session) => session.closed()))).to.deep.equal([code, code]);
    }
  });

  it('of an idle session are closed as soon as this replica stops, others when their command has ended', async () => {
    await using pair = await ApiPair.open({ graceMs: 20_000 });
    const idle = await SessionClient.open(pair.near.base, await pair.claim());
    const busy = await SessionClient.open(pair.near.base, await pair.claim());
    busy.exec('a');
    await eventually('the command', () => pair.far.executions.prepared.size === 1);
    const execution = pair.far.executions.last;
    await execution.running;
    execution.sink.started();
    await eventually('the start', () => busy.of('a').length === 1);
    const stopped = pair.near.server.stop();
    expect(await idle.closed()).to.equal(1001);
    expect(busy.client.closeCode).to.equal(undefined);
    execution.end({ kind: 'exited', exitCode: 0 });
    expect(await busy.end('a')).to.include({ type: 'exit' });
    expect(await busy.closed()).to.equal(1001);
    await stopped;
  });

  it('are cut with a word at the end of the grace time', async () => {
    await using pair = await ApiPair.open({ graceMs: 0 });
    const client = await SocketClient.open(await prepare(pair));
    const execution = pair.far.executions.last;
    await execution.running;
    await pair.near.server.stop();
    expect(await client.closed()).to.equal(1000);
    expect(client.messages.at(-1)).to.deep.equal({ type: 'error', data: 'the service is stopping' });
    expect(await execution.exit).to.deep.equal({ kind: 'hang-up' });
  });
});
