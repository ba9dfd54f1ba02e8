/** What a token may be for. A route asks for one of these, or for any token at all. */
export const SCOPES = ['runners', 'environments', 'control', 'read'] as const;

export type Scope = (typeof SCOPES)[number];
