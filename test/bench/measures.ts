import { BenchClient } from './client.js';
import type { Figure } from './figures.js';
import type { Stack } from './stack.js';

/** What is measured, by the name that selects it. Each leaves the pool as it found it. */
export const MEASURES: Readonly<Record<string, (stack: Stack) => Promise<readonly Figure[]>>> = {
  latency: async (stack) => {
    const client = new BenchClient(stack.url);
    const claims: number[] = [];
    const first: { firstOutputMs: number; endMs: number }[] = [];
    const next: { firstOutputMs: number; endMs: number }[] = [];
    for (let round = 0; round < 15; round += 1) {
      await stack.untilIdle(1);
      const startedMs = performance.now();
      const runner = await client.claim();
      claims.push(performance.now() - startedMs);
      first.push(await client.run(runner, 'echo hi', 'hi'));
      for (let again = 0; again < 3; again += 1) next.push(await client.run(runner, 'echo hi', 'hi'));
      await client.release(runner);
    }
    return [
      { name: 'claim', unit: 'ms', samples: claims },
      { name: 'first execute, first output', unit: 'ms', samples: first.map((run) => run.firstOutputMs) },
      { name: 'first execute, exit', unit: 'ms', samples: first.map((run) => run.endMs) },
      { name: 'next execute, first output', unit: 'ms', samples: next.map((run) => run.firstOutputMs) },
      { name: 'next execute, exit', unit: 'ms', samples: next.map((run) => run.endMs) },
    ];
  },

  keystrokes: async (stack) => {
    const client = new BenchClient(stack.url);
    const runner = await client.claim();
    const samples: number[] = [];
    let typedMs = 0;
    await client.run(runner, 'stty -echo; echo ready; cat', undefined, (socket) => {
      if (typedMs > 0) samples.push(performance.now() - typedMs);
      typedMs = performance.now();
      socket.send(samples.length < 100 ? 'x\n' : '\x04');
    });
    await client.release(runner);
    return [{ name: 'keystroke echo', unit: 'ms', samples }];
  },

  output: async (stack) => {
    const client = new BenchClient(stack.url);
    const runner = await client.claim();
    const { endMs, outputBytes } = await client.run(runner, "head -c 30000000 /dev/zero | tr '\\0' a");
    await client.release(runner);
    if (outputBytes !== 30_000_000) throw new Error(`30 MB of output came as ${outputBytes} bytes`);
    return [{ name: 'output of 30 MB', unit: 'MB/s', samples: [outputBytes / 1000 / endMs] }];
  },

  load: async (stack) => {
    const client = new BenchClient(stack.url);
    await stack.untilIdle(8);
    const runners = await Promise.all(Array.from({ length: 8 }, () => client.claim()));
    const samples: number[] = [];
    const [cpuMs, startedMs] = [stack.service.cpuMs, performance.now()];
    const worker = async (runner: string, index: number): Promise<void> => {
      for (let turn = 0; performance.now() - startedMs < 8_000; turn += 1) {
        samples.push((await client.run(runner, `echo ${index}-${turn}`, `${index}-${turn}`)).endMs);
      }
    };
    await Promise.all(runners.map(worker));
    const seconds = (performance.now() - startedMs) / 1000;
    const cpu = (stack.service.cpuMs - cpuMs) / samples.length;
    await Promise.all(runners.map((runner) => client.release(runner)));
    return [
      { name: 'execute, 8 at once, exit', unit: 'ms', samples },
      { name: 'execute, 8 at once', unit: '/s', samples: [samples.length / seconds] },
      { name: 'processor time of the service for an execution', unit: 'ms', samples: [cpu] },
    ];
  },

  files: async (stack) => {
    const client = new BenchClient(stack.url);
    const runner = await client.claim();
    const big = Buffer.alloc(1_000_000, 'a').toString('base64');
    const [copies, lists, downloads]: [number[], number[], number[]] = [[], [], []];
    const timed = async (samples: number[], work: () => Promise<unknown>): Promise<void> => {
      const startedMs = performance.now();
      await work();
      samples.push(performance.now() - startedMs);
    };
    const copy = [
      { path: 'a.txt', content: big },
      { path: 'd/b.py', content: 'cHJpbnQoMSk=' },
    ];
    for (let round = 0; round < 15; round += 1) {
      await timed(copies, () =>
        client.request('PATCH', `/runners/${runner}/files`, { delete: ['./*'], copy }),
      );
      await timed(lists, async () => (await client.request('GET', `/runners/${runner}/files`)).text());
      await timed(downloads, async () => {
        const { byteLength } = await (
          await client.request('GET', `/runners/${runner}/files/raw?path=a.txt`)
        ).arrayBuffer();
        if (byteLength !== 1_000_000) throw new Error(`1 MB was downloaded as ${byteLength} bytes`);
      });
    }
    await client.release(runner);
    return [
      { name: 'copy of 1 MB and a small file', unit: 'ms', samples: copies },
      { name: 'list', unit: 'ms', samples: lists },
      { name: 'download of 1 MB', unit: 'ms', samples: downloads },
    ];
  },

  refill: async (stack) => {
    const client = new BenchClient(stack.url);
    await stack.untilIdle(8);
    const startedMs = performance.now();
    const runners = await Promise.all(Array.from({ length: 8 }, () => client.claim()));
    await stack.untilIdle(10);
    const samples = [performance.now() - startedMs];
    await Promise.all(runners.map((runner) => client.release(runner)));
    return [{ name: 'pool of 10 full again after 8 claims', unit: 'ms', samples }];
  },

  memory: async (stack) => {
    await stack.untilIdle(10);
    const few = stack.service.memoryBytes;
    await stack.fill(60);
    const many = stack.service.memoryBytes;
    await stack.fill(10);
    return [
      { name: 'memory of the service for an idle runner', unit: 'KB', samples: [(many - few) / 50 / 1024] },
    ];
  },
};
