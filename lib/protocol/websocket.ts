/**
 * What crosses the socket of an execution (Poseidon API 0.2.2). Server to client: one JSON object per text frame. Then
 * close 1000. Client to server: frames are the program's standard input as they stand.
 */
export type ServerMessage =
  | { readonly type: 'start' }
  | { readonly type: 'stdout' | 'stderr'; readonly data: string }
  | { readonly type: 'exit'; readonly data: number }
  | { readonly type: 'timeout' }
  | { readonly type: 'error'; readonly data: string };

/** Existing clients compare this text; it is said only with Nomad's own evidence. */
export const OUT_OF_MEMORY_TEXT = 'the allocation was OOM Killed';

/** What a client is told whose command printed more than it may. */
export const OUTPUT_LIMIT_TEXT = 'the output limit of the execution was exceeded';

export function formatServerMessage(message: ServerMessage): string {
  return JSON.stringify(message);
}
