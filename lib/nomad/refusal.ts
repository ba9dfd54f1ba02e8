import type { ServiceError } from '../base/errors.js';
import type { Asked } from './errors.js';
import { fromStatus } from './errors.js';

/** More of a body than an error carries is not read. */
const MAX_BYTES = 4096;

/** The error for a response that was to be a stream or a socket and is neither. Never rejects; ends the body. */
export async function readRefusal(
  asked: Asked,
  status: number,
  body: AsyncIterable<string | Buffer>,
): Promise<ServiceError> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body) {
      const buffer = Buffer.from(chunk);
      chunks.push(buffer);
      bytes += buffer.length;
      if (bytes >= MAX_BYTES) break;
    }
  } catch {
    // The status is known, and that decides; a body that breaks off only tells less.
  }
  return fromStatus(asked, status, Buffer.concat(chunks).toString('utf8'));
}
