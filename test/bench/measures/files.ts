import type { Measure } from './measure.js';
import { Samples, timed } from './measure.js';

const SIZE_BYTES = 1_000_000;

export const files: Measure = async (stack, { rounds }) => {
  const samples = new Samples();
  const content = Buffer.alloc(SIZE_BYTES, 'a').toString('base64');
  const copy = [
    { path: 'a.txt', content },
    { path: 'd/b.py', content: 'cHJpbnQoMSk=' },
  ];
  const runners = await Promise.all(stack.services.map((party) => party.client.claim()));
  await stack.settled();
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, { name, client }] of stack.services.entries()) {
      const path = `/runners/${runners[index]}/files`;
      const copied = await timed(() => client.request('PATCH', path, { delete: ['./*'], copy }));
      samples.add('copy of 1 MB and a small file', name, copied.ms);
      const listed = await timed(() => client.request('GET', path));
      if (!listed.result.includes('b.py')) throw new Error('the list lacks what was copied');
      samples.add('list', name, listed.ms);
      const downloaded = await timed(() => client.request('GET', `${path}/raw?path=a.txt`));
      if (downloaded.result.length !== SIZE_BYTES) throw new Error('the file came back changed');
      samples.add('download of 1 MB', name, downloaded.ms);
    }
  }
  await Promise.all(stack.services.map(({ client }, index) => client.release(runners[index] ?? '')));
  return samples.figures;
};
