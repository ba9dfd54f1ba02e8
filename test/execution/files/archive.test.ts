import { expect } from 'chai';
import fc from 'fast-check';
import { archive, archiveBytes } from '../../../lib/execution/files/archive.js';
import { membersOf } from '../../../lib/execution/files/copying.js';
import { planFiles } from '../../../lib/execution/files/plan.js';

describe('the archive of a copy', () => {
  it('is as long as was said beforehand, whatever is copied', async () => {
    const name = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 90 })
      .map((text) => text.replaceAll('\0', '_'));
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
    const size = fc.oneof(fc.nat(3000), fc.constantFrom(0, 1, 511, 512, 513, 1024, 70_000));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(path, size), { minLength: 1, maxLength: 8 }), async (sources) => {
        const files = sources.map(([path, sizeBytes]) => ({
          path,
          sizeBytes: path.endsWith('/') ? undefined : sizeBytes,
          // eslint-disable-next-line @typescript-eslint/require-await -- an asynchronous source of what is there already
          bytes: async function* () {
            for (let at = 0; at < sizeBytes; at += 999) yield Buffer.alloc(Math.min(999, sizeBytes - at));
          },
        }));
        const members = membersOf(planFiles([], files), files);
        let length = 0;
        for await (const chunk of archive(members)) length += chunk.length;
        expect(length).to.equal(archiveBytes(members.map(({ sizeBytes }) => sizeBytes)));
      }),
    );
  });
});
