import { expect } from 'chai';
import { Heartbeat } from '../../../lib/api/websocket/heartbeat.js';
import { FakeClock } from '../../support/fake-clock.js';

describe('Heartbeat', () => {
  const clock = new FakeClock();
  const peer = { pings: 0, backlog: 0, sent: 0, paused: false };
  let gone = 0;
  let heartbeat: Heartbeat;

  beforeEach(() => {
    Object.assign(peer, { pings: 0, backlog: 0, sent: 0, paused: false });
    gone = 0;
    heartbeat = new Heartbeat({
      clock,
      peer: {
        ping: () => (peer.pings += 1),
        backlogBytes: () => peer.backlog,
        sentBytes: () => peer.sent,
        isPaused: () => peer.paused,
      },
      onGone: () => (gone += 1),
    });
    heartbeat.start();
  });

  afterEach(() => {
    heartbeat.stop();
    expect(clock.armed).to.equal(0);
  });

  async function beats(count: number, each: () => void = () => undefined): Promise<void> {
    for (let beat = 0; beat < count; beat += 1) {
      await clock.advance(30_000);
      each();
    }
  }

  it('tells once of a peer that left two pings unanswered', async () => {
    await beats(2);
    expect([peer.pings, gone]).to.deep.equal([2, 0]);
    await beats(5);
    expect([peer.pings, gone]).to.deep.equal([2, 1]);
  });

  it('forgives one missed ping', async () => {
    let beat = 0;
    await beats(20, () => {
      beat += 1;
      if (beat % 2 === 0) heartbeat.answered();
    });
    expect(gone).to.equal(0);
  });

  it('takes the progress of a backlog for an answer: a slow reader is there', async () => {
    peer.backlog = 1_000_000;
    await beats(20, () => (peer.sent += 100));
    expect(gone).to.equal(0);
    await beats(3);
    expect(gone).to.equal(1);
  });

  it('does not take small frames that the connection swallowed for an answer', async () => {
    await beats(3, () => (peer.sent += 2));
    expect(gone).to.equal(1);
  });

  it('judges nothing while it could not see an answer', async () => {
    peer.paused = true;
    await beats(10);
    expect(gone).to.equal(0);
    peer.paused = false;
    await beats(2);
    expect(gone).to.equal(1);
  });
});
