import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { ApiPair } from '../../support/api-pair.js';
import { FakeClock } from '../../support/fake-clock.js';
import { placeAt, ScriptedOwner } from '../../support/scripted-owner.js';
import { upgradeStatus } from '../../support/upgrade-status.js';
import { eventually } from '../../support/waiting.js';

describe('requests for the runner of an owner that is lost', () => {
  it('are served by a takeover where its port is closed, with their bodies', async () => {
    await using pair = await ApiPair.open();
    const gone = await ScriptedOwner.open(() => undefined);
    const { url } = gone;
    await gone[Symbol.asyncDispose]();
    const { id, owner } = await placeAt(pair, url);
    const body = { copy: [{ path: './a', content: Buffer.alloc(2_000_000, 'z').toString('base64') }] };
    const answer = await pair.near.send('PATCH', `/runners/${id}/files`, body);
    expect(answer.status, answer.text).to.equal(204);
    expect(pair.near.files.contents.get('./a')?.length).to.equal(2_000_000);
    expect(pair.nearCluster.suspected).to.deep.equal([owner.id]);
  });

  it('are tried again where it dies before anything was sent of a body', async () => {
    await using pair = await ApiPair.open();
    let count = 0;
    await using dying = await ScriptedOwner.open((socket) => {
      count += 1;
      // The second time its port is closed.
      if (count === 2) pair.nearCluster.suspect(owner.id);
      socket.resetAndDestroy();
    });
    const { id, owner } = await placeAt(pair, dying.url);
    const answer = await pair.near.send('POST', `/runners/${id}/execute`, { command: 'true' });
    expect(answer.status, answer.text).to.equal(200);
    expect(count).to.equal(2);
  });

  it('are given up after three tries', async () => {
    await using pair = await ApiPair.open();
    await using dying = await ScriptedOwner.open((socket) => socket.resetAndDestroy());
    const { id } = await placeAt(pair, dying.url);
    const answer = await pair.near.send('DELETE', `/runners/${id}`);
    expect(answer.status).to.equal(503);
    expect(answer.headers.get('retry-after')).to.match(/^\d+$/);
    expect(dying.sockets).to.have.length(3);
  });

  it('are not tried again once the body was sent', async () => {
    await using pair = await ApiPair.open();
    await using dying = await ScriptedOwner.open((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      socket.once('data', () => socket.resetAndDestroy());
    });
    const { id } = await placeAt(pair, dying.url);
    const answer = await pair.near.send('POST', `/runners/${id}/execute`, { command: 'true' });
    expect(answer.status).to.equal(503);
    expect(answer.text).to.include('may or may not');
    expect(dying.sockets).to.have.length(1);
  });

  it('are cut where the answer breaks off, and never look whole', async () => {
    await using pair = await ApiPair.open();
    for (const framing of ['Content-Length: 100', 'Transfer-Encoding: chunked']) {
      await using dying = await ScriptedOwner.open((socket) => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n${framing}\r\n\r\n`);
        socket.write(framing.includes('chunked') ? '5\r\nhello\r\n' : 'hello', () => socket.end());
      });
      const { id } = await placeAt(pair, dying.url);
      const sent = request(`${pair.near.base}/runners/${id}/files/raw?path=a`, { agent: false }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      const error = await response.toArray().catch((reason: unknown) => reason);
      expect(error, framing).to.be.instanceOf(Error);
      expect(response.complete).to.equal(false);
    }
  });

  it('are answered with 503 within 5 s where it hangs, on each bounded route and for each body', async () => {
    const clock = new FakeClock();
    await using pair = await ApiPair.open({ clock }, {});
    let asked = 0;
    await using hanging = await ScriptedOwner.open(() => (asked += 1));
    const { id } = await placeAt(pair, hanging.url);
    const url = `${pair.near.base}/runners/${id}`;
    const statuses: (number | undefined)[] = [];
    const answered = Promise.all(
      [
        pair.near.send('DELETE', `/runners/${id}`).then(({ status }) => status),
        pair.near.send('POST', `/runners/${id}/execute`, { command: 'true' }).then(({ status }) => status),
        pair.near.send('PATCH', `/runners/${id}/files`, { delete: ['a'] }).then(({ status }) => status),
        upgradeStatus(`${url.replace('http', 'ws')}/session`, { protocols: ['serai.v1'] }),
      ].map((each) => each.then((status) => statuses.push(status))),
    );
    await eventually('all to be asked', () => asked === 4);
    await clock.advance(3_999);
    expect(statuses).to.deep.equal([]);
    await clock.advance(1);
    await answered;
    expect(statuses).to.deep.equal([503, 503, 503, 503]);
    expect(pair.nearCluster.listeners).to.equal(0);
    await eventually('the connections to it to be closed', () =>
      hanging.sockets.every((socket) => socket.destroyed || socket.readableEnded),
    );
  });

  it('find another owner where the one that hangs is found dead', async () => {
    const clock = new FakeClock();
    await using pair = await ApiPair.open({ clock }, {});
    let isAsked = false;
    await using hanging = await ScriptedOwner.open((socket) => {
      socket.pause();
      isAsked = true;
    });
    const { id, owner } = await placeAt(pair, hanging.url);
    pair.near.files.contents.set('a', Buffer.from('here'));
    const answer = pair.near.send('GET', `/runners/${id}/files/raw?path=a`);
    await eventually('it to be asked', () => isAsked);
    pair.nearCluster.remove(owner.id);
    await clock.advance(5_000);
    const { status, text } = await answer;
    expect([status, text]).to.deep.equal([200, 'here']);
  });

  it('for a WebSocket end at an owner that takes it when this replica stops already', async () => {
    await using pair = await ApiPair.open({ graceMs: 20_000 });
    let upgrading: Socket | undefined;
    await using late = await ScriptedOwner.open((socket) => (upgrading = socket));
    const { id } = await placeAt(pair, late.url);
    const url = `${pair.near.base.replace('http', 'ws')}/runners/${id}/session`;
    const status = upgradeStatus(url, { protocols: ['serai.v1'] });
    await eventually('the owner to be asked', () => upgrading !== undefined);
    const stopped = pair.near.server.stop();
    upgrading?.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
    upgrading?.resume();
    expect(await status).to.equal(503);
    await eventually('the owner to be left', () => upgrading?.closed === true);
    await stopped;
  });

  it('leave no body behind where a client leaves in the middle of it', async () => {
    await using pair = await ApiPair.open();
    await using taking = await ScriptedOwner.open((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      socket.resume();
    });
    const { id } = await placeAt(pair, taking.url);
    const sent = request(`${pair.near.base}/runners/${id}/files`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json', 'content-length': '1000000' },
      agent: false,
    });
    sent.on('error', () => undefined);
    sent.write('{"delete":["');
    await eventually('the owner to be asked', () => taking.sockets.length === 1);
    sent.destroy();
    await eventually('the owner to be left', () => taking.sockets.every((socket) => socket.closed));
  });

  it('hold a client back that sends faster than the owner takes', async () => {
    await using pair = await ApiPair.open();
    await using slow = await ScriptedOwner.open((socket) => {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      socket.pause();
    });
    const { id } = await placeAt(pair, slow.url);
    const sent = request(`${pair.near.base}/runners/${id}/files`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
      agent: false,
    });
    sent.on('error', () => undefined);
    const chunk = Buffer.alloc(1_000_000, 'a');
    let taken = 0;
    // Client, replica and owner share one event loop: nothing is on its way when that many turns of it bring nothing.
    const goesOn = async (): Promise<boolean> => {
      let isTaken = false;
      sent.write(chunk, () => (isTaken = true));
      for (let turns = 0; turns < 1_000 && !isTaken; turns += 1) await new Promise(setImmediate);
      return isTaken;
    };
    while (taken < 60 && (await goesOn())) taken += 1;
    expect(taken).to.be.lessThan(40);
    sent.destroy();
  });
});
