import { expect } from 'chai';
import { clientOfOwnService } from '../../lib/cli/own-service.js';
import { CertificateFolder } from '../support/certificates.js';
import { TestApi } from '../support/test-api.js';

function tokens(...scopes: string[][]): Record<string, string> {
  const list = scopes.map((each, index) => ({ name: `t${index}`, token: `token-${index}`, scopes: each }));
  return { SERAI_AUTH_TOKENS: JSON.stringify(list) };
}

const GOOD = tokens(['read'], ['environments', 'read', 'runners']);

describe('the client of the own service', () => {
  let folder: CertificateFolder;

  beforeEach(() => {
    folder = new CertificateFolder();
  });

  afterEach(() => folder[Symbol.dispose]());

  for (const [what, settings] of [
    ['plain', {}],
    ['with scoped tokens', GOOD],
    [
      'with a public address that does not lead here',
      { ...GOOD, SERAI_SERVER_PUBLIC_URL: 'https://public.invalid/x' },
    ],
  ] as const) {
    for (const isEncrypted of [false, true]) {
      it(`runs a program on a service that is ${what}${isEncrypted ? ', over TLS' : ''}`, async () => {
        await using api = await TestApi.open({
          settings: { ...settings, ...(isEncrypted ? folder.settings : {}) },
        });
        api.executions.onPrepare = (execution) => {
          void execution.running.then(() => {
            execution.sink.output('stdout', 'hello');
            execution.end({ kind: 'exited', exitCode: 3 });
          });
        };
        const client = await clientOfOwnService(api.server.url, api.deps.config);
        expect((await client.environments()).map(({ id }) => id)).to.deep.equal([1]);
        const { runnerId } = await client.claim(1);
        expect(await client.run(runnerId, 'true', 5)).to.include({ stdout: 'hello', exitCode: 3 });
        await client.return(runnerId);
        await client.return(runnerId).then(
          () => expect.fail('it was returned twice'),
          (error: unknown) => expect(error).to.have.property('status', 410),
        );
      });
    }
  }

  it('says what token it misses', async () => {
    await using api = await TestApi.open({ settings: tokens(['read', 'runners'], ['environments']) });
    await clientOfOwnService(api.server.url, api.deps.config).then(
      () => expect.fail('there is one'),
      (error: unknown) => {
        expect(error).to.have.property('code', 'INVALID_CONFIG');
        expect(error).to.have.property('message').that.contains('environments, runners, read');
      },
    );
  });
});
