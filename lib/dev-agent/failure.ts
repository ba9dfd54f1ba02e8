/** An answer of the API that is no success: Nomad sends a status and one text, no JSON. */
export class HttpFailure extends Error {
  override readonly name = 'HttpFailure';
  readonly status: number;

  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}
