import { once } from 'node:events';
import type { Request, Response } from 'express';
import { Budget } from '../../base/budget.js';
import { ServiceError } from '../../base/errors.js';
import type { SourceFile } from '../../execution/files/api.js';
import { isFolder } from '../../execution/files/plan.js';
import type { CopyEntry } from '../../protocol/files.js';
import { sendEmpty } from '../answer.js';
import { contextOf } from '../context.js';
import type { ApiDeps } from '../deps.js';
import { listFiles, readFile, updateFiles } from '../operations/files.js';
import type { SpooledBody } from '../uploads/spool.js';
import { spoolJson } from '../uploads/spool.js';
import type { ApiRouter } from './route.js';
import { parameter, route } from './route.js';

/** Files of a runner: delete and copy, list, download. Bodies are streamed both ways. */
export function fileRoutes(router: ApiRouter, { runners, files, config, clock, randomness }: ApiDeps): void {
  const { maxBodyBytes, maxSpoolBytes, maxFileBytes } = config.server;
  const spooling = { limitBytes: maxBodyBytes, room: new Budget(maxSpoolBytes), clock, randomness };

  router.declare(
    route(updateFiles, async (req, res) => {
      const id = parameter(req, 'id');
      runners.get(id); // an unknown runner is told before its body is judged
      updateFiles.parseQuery(req);
      const { requestSignal } = contextOf(req);
      await using body = await spoolJson(req, spooling, requestSignal);
      const request = updateFiles.parseBody(body.value);
      const sources: SourceFile[] = [];
      // One after the other: each is decoded once to be measured.
      for (const [index, entry] of (request.copy ?? []).entries()) {
        sources.push(await source(body, entry, { name: `copy[${index}]`, maxFileBytes }));
      }
      const runner = runners.get(id); // it may have gone while the body arrived
      await files.update(runner, { removals: request.delete ?? [], files: sources, requestSignal });
      sendEmpty(res, 204);
    }),
    route(listFiles, async (req, res) => {
      const runner = runners.get(parameter(req, 'id'));
      const query = listFiles.parseQuery(req);
      await using listing = await files.list(runner, {
        path: query.path ?? './',
        recursive: query.recursive ?? true,
        privileged: query.privilegedExecution ?? false,
        requestSignal: contextOf(req).requestSignal,
      });
      res.writeHead(200, { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' });
      if (req.method === 'HEAD') {
        res.end();
        return;
      }
      let separator = '{"files":[';
      for await (const entries of listing.batches) {
        for (const entry of entries) {
          await write(res, separator + JSON.stringify(entry));
          separator = ',';
        }
      }
      res.end(separator === ',' ? ']}' : '{"files":[]}');
    }),
  );

  router.declare(
    route(readFile, async (req, res) => {
      const runner = runners.get(parameter(req, 'id'));
      const query = readFile.parseQuery(req);
      await using content = await files.read(runner, {
        path: query.path,
        privileged: query.privilegedExecution ?? false,
        requestSignal: contextOf(req).requestSignal,
      });
      res.writeHead(200, {
        'Content-Type': 'application/octet-stream',
        'Content-Disposition': attachment(query.path),
        'Cache-Control': 'no-store',
        ...(content.sizeBytes === undefined ? {} : { 'Content-Length': content.sizeBytes }),
      });
      await sendBytes(req, res, content.bytes);
    }),
  );
}

async function source(
  body: SpooledBody,
  { path, content }: CopyEntry,
  { name, maxFileBytes }: { readonly name: string; readonly maxFileBytes: number },
): Promise<SourceFile> {
  const encoded = body.content(content ?? '', `${name}.content`);
  if (isFolder(path)) {
    if (content !== undefined && content !== null && content !== '') {
      throw new ServiceError('INVALID_REQUEST', `${name} is a folder and cannot have content`);
    }
    return { path, sizeBytes: undefined, bytes: () => encoded.bytes() };
  }
  const sizeBytes = await encoded.measure();
  if (sizeBytes > maxFileBytes) {
    throw new ServiceError('FILE_TOO_LARGE', `${name} is larger than the limit of ${maxFileBytes} bytes`);
  }
  return { path, sizeBytes, bytes: () => encoded.bytes() };
}

/**
 * The last chunk leaves only once the source has ended well. With the length told, a client has the whole file with its
 * last byte and goes on: a failure after that would reach it in the middle of its next request.
 */
async function sendBytes(req: Request, res: Response, bytes: AsyncIterable<Buffer>): Promise<void> {
  let last: Buffer | undefined;
  if (req.method !== 'HEAD') {
    for await (const chunk of bytes) {
      if (last) await write(res, last);
      last = chunk;
    }
  }
  res.end(last);
}

/** Waits while the client's buffer is full. Throws the context's reason once the client left. */
async function write(res: Response, chunk: string | Buffer): Promise<void> {
  const { requestSignal } = contextOf(res.req);
  requestSignal.throwIfAborted();
  if (!res.write(chunk)) await once(res, 'drain', { signal: requestSignal });
}

/** The name of the file, as RFC 6266 has it: plain for old clients, and exact. */
function attachment(path: string): string {
  const name = path.split('/').at(-1) ?? '';
  const plain = name.replace(/[^\x20-\x7e]|["\\]/g, '_');
  const exact = encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"${plain === name ? '' : `; filename*=UTF-8''${exact}`}`;
}
