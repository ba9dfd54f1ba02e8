import path from 'node:path';
import { expect } from 'chai';
import { CONFIG_KEYS } from '../../lib/config/keys.js';
import { ConfigFolder } from '../support/config-folder.js';

describe('loadConfig', () => {
  let folder: ConfigFolder;

  beforeEach(() => {
    folder = new ConfigFolder();
  });

  afterEach(() => folder[Symbol.dispose]());

  const file: ConfigFolder['file'] = (...args) => folder.file(...args);
  const load: ConfigFolder['load'] = (...args) => folder.load(...args);
  const faultsOf: ConfigFolder['faultsOf'] = (...args) => folder.faultsOf(...args);

  it('gives every key its default where no source names it', () => {
    const { config, given } = load();
    expect(config.server).to.deep.equal({
      host: '127.0.0.1',
      port: 7200,
      tls: { certificate: undefined, key: undefined },
      publicUrl: undefined,
      trustedProxies: [],
      maxBodyBytes: 67_108_864,
      maxFileBytes: 1_073_741_824,
      maxSpoolBytes: 1_073_741_824,
    });
    expect(config.nomad.addresses).to.deep.equal(['http://127.0.0.1:4646']);
    expect(config.nomad.network.mode).to.equal('host');
    expect(config.execution.environment).to.deep.equal({ CODEOCEAN: 'true' });
    expect(config.auth).to.deep.equal({
      token: undefined,
      tokens: [],
      allowAnonymous: false,
      rateLimit: { requestsPerSecond: 0, burst: undefined },
    });
    expect([...given]).to.deep.equal([]);
  });

  it('lets flags win over variables, and variables over the file', () => {
    const { config, given } = load({
      file: file('server:\n  port: 1\n  host: "::1"\nlog:\n  level: debug\n'),
      env: { SERAI_SERVER_PORT: '2', SERAI_LOG_LEVEL: 'warn' },
      flags: [{ flag: '--port', key: 'server.port', text: '3' }],
    });
    expect(config.server.port).to.equal(3);
    expect(config.server.host).to.equal('::1');
    expect(config.log.level).to.equal('warn');
    expect([...given]).to.have.members(['server.port', 'server.host', 'log.level']);
  });

  it('puts presets of a command between the defaults and every source', () => {
    const presets = [
      { flag: 'start', key: 'log.level', text: 'warn' },
      { flag: 'start', key: 'log.format', text: 'text' },
    ];
    const { config, given } = load({ presets, env: { SERAI_LOG_LEVEL: 'debug' } });
    expect(config.log).to.deep.equal({ level: 'debug', format: 'text' });
    expect([...given]).to.deep.equal(['log.level']);
  });

  it('reads the file that SERAI_CONFIG names where no flag names one', () => {
    const { config } = load({ env: { SERAI_CONFIG: file('server: { port: 5 }') } });
    expect(config.server.port).to.equal(5);
  });

  it('takes every key from a variable that is named by one rule', () => {
    const texts: Record<string, string> = {
      SERAI_SERVER_MAX_BODY_BYTES: '2048',
      SERAI_POOL_ALERT_THRESHOLD: '0.25',
      SERAI_NOMAD_NETWORK_MODE: 'bridge',
      SERAI_NOMAD_ADDRESSES: 'http://a:1, https://b:2/',
      SERAI_EXECUTION_ENVIRONMENT: '{"A":"x y"}',
      SERAI_API_PEER_STATUSES: 'true',
    };
    const { config } = load({ env: texts });
    expect(config.server.maxBodyBytes).to.equal(2048);
    expect(config.pool.alertThreshold).to.equal(0.25);
    expect(config.nomad.network.mode).to.equal('bridge');
    expect(config.nomad.addresses).to.deep.equal(['http://a:1', 'https://b:2/']);
    expect(config.execution.environment).to.deep.equal({ A: 'x y' });
    expect(config.api.peerStatuses).to.equal(true);
    expect(new Set(CONFIG_KEYS.map((key) => key.variable)).size).to.equal(CONFIG_KEYS.length);
  });

  it('takes the variables of Nomad’s own command line as they are meant there', () => {
    const { config } = load({
      env: {
        NOMAD_ADDR: 'https://nomad:4646',
        NOMAD_TOKEN: 'secret',
        NOMAD_NAMESPACE: 'ns',
        NOMAD_REGION: 'eu',
        NOMAD_CACERT: 'ca.pem',
        NOMAD_CLIENT_CERT: '/certs/c.pem',
        NOMAD_CLIENT_KEY: '/certs/k.pem',
        NOMAD_TLS_SERVER_NAME: 'server.global.nomad',
        NOMAD_SKIP_VERIFY: '1',
      },
    });
    expect(config.nomad).to.include({
      token: 'secret',
      namespace: 'ns',
      region: 'eu',
      caCert: path.join(folder.path, 'ca.pem'),
      clientCert: '/certs/c.pem',
      clientKey: '/certs/k.pem',
      tlsServerName: 'server.global.nomad',
      skipVerify: true,
    });
    expect(config.nomad.addresses).to.deep.equal(['https://nomad:4646']);
  });

  it('prefers the variable of its own name to that of Nomad, and takes an empty one as absent', () => {
    const env = { NOMAD_ADDR: 'http://theirs:1', SERAI_NOMAD_ADDRESSES: 'http://ours:1' };
    expect(load({ env }).config.nomad.addresses).to.deep.equal(['http://ours:1']);
    expect(load({ env: { ...env, SERAI_NOMAD_ADDRESSES: '' } }).config.nomad.addresses).to.deep.equal([
      'http://theirs:1',
    ]);
  });

  it('reports all faults of all sources at once, each with its name, its value and what was expected', () => {
    const config = file('server:\n  port: seven\n  prot: 1\npool: 5\nnomad:\n  addresses: [ftp://x]\n');
    const faults = faultsOf({
      file: config,
      env: { SERAI_LOG_LEVEL: 'loud' },
      flags: [
        { flag: '--set', key: 'shutdown.graceSeconds', text: '-1' },
        { flag: '--set', key: 'shutdown.grace', text: '1' },
      ],
    });
    expect(faults).to.have.members([
      `server.port in ${config}: "seven" is not an integer from 0 to 65535`,
      `server.prot in ${config}: expected a known key; did you mean server.port?`,
      `pool in ${config}: expected a section with keys`,
      `nomad.addresses in ${config}: ["ftp://x"] is not a list of http:// or https:// addresses`,
      'SERAI_LOG_LEVEL: "loud" is not one of error, warn, info, debug',
      '--set shutdown.graceSeconds: -1 is not an integer from 0 to 2147483',
      '--set shutdown.grace: expected a known key',
    ]);
  });

  it('refuses a bad value also where a later source wins', () => {
    expect(
      faultsOf({
        env: { SERAI_SERVER_PORT: '99999' },
        flags: [{ flag: '--port', key: 'server.port', text: '80' }],
      }),
    ).to.deep.equal(['SERAI_SERVER_PORT: 99999 is not an integer from 0 to 65535']);
  });

  it('takes no text for a number, as a file spells it', () => {
    const config = file('server: { port: "80" }');
    expect(faultsOf({ file: config })).to.deep.equal([
      `server.port in ${config}: "80" is not an integer from 0 to 65535`,
    ]);
  });

  it('reads a secret from the file that it refers to, and never shows one', () => {
    file('hidden\n', 'token');
    const config = file('auth: { token: file:token }');
    expect(load({ file: config }).config.auth.token).to.equal('hidden');
    expect(faultsOf({ env: { NOMAD_TOKEN: 'hid den' } }).join()).not.to.contain('hid den');
    file('two words', 'token');
    expect(faultsOf({ file: config }).join())
      .to.contain('token')
      .and.not.to.contain('two words');
    expect(faultsOf({ env: { SERAI_AUTH_TOKEN: 'file:gone' } })[0]).to.match(
      /^SERAI_AUTH_TOKEN: expected a readable file/,
    );
  });

  it('refuses a file that is missing, no YAML or no mapping', () => {
    expect(faultsOf({ file: 'gone.yaml' })[0]).to.match(/gone\.yaml: expected a readable file/);
    expect(faultsOf({ file: file('a: [1') })[0]).to.match(/expected YAML/);
    expect(faultsOf({ file: file('- 1') })[0]).to.match(/expected sections/);
  });

  it('takes an empty file and empty sections as saying nothing', () => {
    expect(load({ file: file('') }).config.server.port).to.equal(7200);
    expect(load({ file: file('server:\nnomad:\n  network:\n') }).config.nomad.network.mode).to.equal('host');
  });

  it('warns about variables of its prefix that mean nothing, and names the likely one', () => {
    const { warnings } = load({ env: { SERAI_SERVER_PROT: '1', SERAI_PORT_80_TCP_ADDR: 'x' } });
    expect(warnings[0]).to.equal(
      'SERAI_SERVER_PROT is no variable of Serai; did you mean SERAI_SERVER_PORT?',
    );
    expect(warnings).to.have.length(2);
  });

  it('returns a configuration that nobody can change', () => {
    const { config } = load();
    const frozen = [config, config.server, config.nomad.network, config.nomad.addresses];
    expect(frozen.every((part) => Object.isFrozen(part))).to.equal(true);
  });
});
