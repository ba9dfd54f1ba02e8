import type { ServerResponse } from 'node:http';

/** Answers with a JSON body. */
export function sendJson(res: ServerResponse, status: number, body: unknown): void {
  // As a text it leaves in one piece with the head.
  const text = JSON.stringify(body);
  res.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
  });
  res.end(text);
}

/** Answers with a page that can do and load only what the policy allows. */
export function sendHtml(res: ServerResponse, page: string, policy: string): void {
  const text = Buffer.from(page, 'utf8');
  res.writeHead(200, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Length': text.length,
    'Content-Security-Policy': policy,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-store',
  });
  res.end(text);
}

/** Answers without a body. The length is said all the same: some clients wait for a body else. */
export function sendEmpty(res: ServerResponse, status: 201 | 204): void {
  res.writeHead(status, { 'Content-Length': 0 });
  res.end();
}
