import path from 'node:path';
import { expect } from 'chai';
import { ConfigFolder } from '../support/config-folder.js';

describe('loadConfig, of who may use the service', () => {
  let folder: ConfigFolder;

  beforeEach(() => {
    folder = new ConfigFolder();
  });

  afterEach(() => folder[Symbol.dispose]());

  const file: ConfigFolder['file'] = (...args) => folder.file(...args);
  const load: ConfigFolder['load'] = (...args) => folder.load(...args);
  const faultsOf: ConfigFolder['faultsOf'] = (...args) => folder.faultsOf(...args);

  it('listens off the machine only with a token or when anonymous use is allowed [A4-84]', () => {
    const host = { SERAI_SERVER_HOST: '0.0.0.0' };
    expect(faultsOf({ env: host })[0]).to.match(/^server\.host: "0\.0\.0\.0" is not a loopback address/);
    expect(faultsOf({ env: { SERAI_SERVER_HOST: 'example.org' } })).to.have.length(1);
    const around = {
      SERAI_SERVER_TLS_CERTIFICATE: '/c.pem',
      SERAI_SERVER_TLS_KEY: '/k.pem',
      SERAI_SERVER_PUBLIC_URL: 'https://serai.example',
      SERAI_SERVER_TRUSTED_PROXIES: '10.0.0.0/8',
      SERAI_AUTH_TOKENS: '[]',
    };
    expect(faultsOf({ env: { ...host, ...around } }), 'whatever is around it').to.have.length(1);
    expect(load({ env: { ...host, SERAI_AUTH_TOKEN: 't' } }).config.auth.token).to.equal('t');
    expect(load({ env: { ...host, SERAI_AUTH_ALLOW_ANONYMOUS: 'true' } }).config.server.host).to.equal(
      '0.0.0.0',
    );
    for (const name of ['127.0.0.1', '127.9.9.9', '::1', 'localhost', '::ffff:127.0.0.1']) {
      expect(load({ env: { SERAI_SERVER_HOST: name } }).config.server.host).to.equal(name);
    }
  });

  it('takes an address of the public and networks of proxies, and warns where no token keeps the public out', () => {
    const env = {
      SERAI_SERVER_PUBLIC_URL: 'https://serai.example/x',
      SERAI_SERVER_TRUSTED_PROXIES: '10.0.0.0/8, ::1',
    };
    const { config, warnings } = load({ env });
    expect(config.server.publicUrl).to.equal('https://serai.example/x');
    expect(config.server.trustedProxies).to.deep.equal(['10.0.0.0/8', '::1']);
    expect(warnings.join()).to.match(/no token is/);
    expect(load({ env: { ...env, SERAI_AUTH_TOKEN: 't' } }).warnings).to.deep.equal([]);
    expect(load({ env: { SERAI_SERVER_PUBLIC_URL: 'http://localhost:80' } }).warnings).to.deep.equal([]);
    for (const url of [
      'serai.example',
      'ftp://serai.example',
      'https://a@b',
      'https://a/?b',
      'https://a:b',
    ]) {
      expect(faultsOf({ env: { SERAI_SERVER_PUBLIC_URL: url } })[0], url).to.match(
        /^(SERAI_)?SERVER_?\.?PUBLIC/i,
      );
    }
    expect(faultsOf({ env: { SERAI_SERVER_TRUSTED_PROXIES: '10.0.0.0/33,::1,1.2' } })).to.deep.equal([
      'server.trustedProxies: 10.0.0.0/33, 1.2 is not an address or a network such as 10.0.0.0/8',
    ]);
  });

  it('wants a certificate and its key together', () => {
    expect(faultsOf({ env: { NOMAD_CLIENT_CERT: '/c.pem' } })[0]).to.match(/^nomad\.clientKey/);
    expect(faultsOf({ env: { SERAI_SERVER_TLS_KEY: '/k.pem' } })[0]).to.match(/^server\.tls\.certificate/);
    const tls = { SERAI_SERVER_TLS_CERTIFICATE: 'c.pem', SERAI_SERVER_TLS_KEY: '/k.pem' };
    expect(load({ env: tls }).config.server.tls).to.deep.equal({
      certificate: path.join(folder.path, 'c.pem'),
      key: '/k.pem',
    });
  });

  describe('of several tokens', () => {
    const scopes = ['runners', 'read'];

    it('reads them from a file, its references included, or from JSON in a variable', () => {
      file('hidden\n', 'secret');
      const config = file(
        'auth:\n  tokens:\n    - { name: ci, token: file:secret, scopes: [runners, read] }\n',
      );
      expect(load({ file: config }).config.auth.tokens).to.deep.equal([
        { name: 'ci', token: 'hidden', scopes },
      ]);
      const env = { SERAI_AUTH_TOKENS: JSON.stringify([{ name: 'ci', token: 'open', scopes }]) };
      const { auth, server } = load({ env: { ...env, SERAI_SERVER_HOST: '0.0.0.0' } }).config;
      expect(auth.tokens).to.deep.equal([{ name: 'ci', token: 'open', scopes }]);
      expect(server.host, 'as with the one token').to.equal('0.0.0.0');
      expect(Object.isFrozen(auth.tokens[0]?.scopes)).to.equal(true);
    });

    it('names what is wrong with which of them, and shows none', () => {
      const tokens = [
        { name: 'a b', token: 'secret', scopes },
        { name: 'x', token: 'hidden secret', scopes: ['everything'] },
        { name: 'y', scopes: [], secretsince: 1, burst: 0.5 },
        'secret',
      ];
      const faults = faultsOf({ env: { SERAI_AUTH_TOKENS: JSON.stringify(tokens) } });
      const scopesExpected = 'a list of runners, environments, control, read';
      const tokenExpected = 'printable ASCII without blanks, or file:PATH';
      expect(faults).to.have.members([
        'SERAI_AUTH_TOKENS (name of item 1): expected a name of up to 63 letters, digits, dots, dashes and underscores',
        `SERAI_AUTH_TOKENS (token of item 2): expected ${tokenExpected}`,
        `SERAI_AUTH_TOKENS (scopes of item 2): expected ${scopesExpected}`,
        `SERAI_AUTH_TOKENS (token of item 3): expected ${tokenExpected}`,
        `SERAI_AUTH_TOKENS (scopes of item 3): expected ${scopesExpected}`,
        'SERAI_AUTH_TOKENS (secretsince of item 3): expected one of name, token, scopes, requestsPerSecond, burst',
        'SERAI_AUTH_TOKENS (burst of item 3): expected an integer from 1 to 1000000, instead of auth.rateLimit.burst',
        'SERAI_AUTH_TOKENS: expected a list of objects with name, token and scopes',
      ]);
      expect(faultsOf({ env: { SERAI_AUTH_TOKENS: 'secret' } })).to.deep.equal([
        'SERAI_AUTH_TOKENS: expected a list of objects with name, token and scopes',
      ]);
      file('two words', 'secret');
      for (const reference of ['file:secret', 'file:gone']) {
        const item = JSON.stringify([{ name: 'a', token: reference, scopes }]);
        const [fault = ''] = faultsOf({ env: { SERAI_AUTH_TOKENS: item } });
        expect(fault)
          .to.match(/^SERAI_AUTH_TOKENS \(token of item 1\)/)
          .and.not.to.contain('two words');
      }
    });

    it('lets no name and no token stand for two', () => {
      const tokensOf = (...pairs: [string, string][]): string[] =>
        faultsOf({
          env: {
            SERAI_AUTH_TOKEN: 'one-for-all',
            SERAI_AUTH_TOKENS: JSON.stringify(pairs.map(([name, token]) => ({ name, token, scopes }))),
          },
        });
      expect(tokensOf(['default', 'x'])).to.deep.equal([
        'auth.tokens: expected different names; "default" is there twice',
      ]);
      expect(tokensOf(['a', 'x'], ['b', 'x'], ['c', 'one-for-all'])).to.deep.equal([
        'auth.tokens: expected different tokens; a and b are the same',
        'auth.tokens: expected different tokens; default and c are the same',
      ]);
    });
  });
});
