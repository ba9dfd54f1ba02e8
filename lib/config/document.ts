import { expectedOf } from './expected.js';
import type { ConfigKey } from './keys.js';
import { CONFIG_KEYS } from './keys.js';
import type { KeySchema } from './key-schema.js';
import { CONFIG_SCHEMA } from './schema.js';

const HEAD = `# Configuration

<!-- Written from lib/config/schema.ts by \`npm run docs\`; edit the schema, not this file. -->

Serai reads, each over the one before: its defaults, a YAML file (\`--config FILE\`, or the variable \`SERAI_CONFIG\`),
environment variables, flags. Every source is validated; all faults are reported at once and the service does not start.

- **File**: the keys below as nested YAML, for example

  \`\`\`yaml
  server:
    port: 7200
  auth:
    token: file:/run/secrets/serai-token
  nomad:
    addresses: [https://nomad-1:4646, https://nomad-2:4646]
  \`\`\`

- **Environment variables**: one for every key, named by one rule: \`server.maxBodyBytes\` is
  \`SERAI_SERVER_MAX_BODY_BYTES\`. Lists are separated by commas; lists of objects and names with values are JSON. The
  variables of Nomad’s command line (\`NOMAD_ADDR\` and the others named below) mean what they mean there; the \`SERAI_\`
  variable of the same key wins. An empty variable counts as absent.
- **Flags**: \`--set key=value\` for every key, and \`--host\`, \`--port\`, \`--log-level\`, \`--log-format\`.

Secrets may be references: \`file:PATH\` takes the contents of the file, without blanks around it. Relative paths start
at the folder of the configuration file, or at the working directory where they come from a variable or a flag. Times are
in seconds. Keys marked _live_ can change while the service runs, _restart_ ones are fixed for its life; the service
reads its configuration when it starts.

Without a token (\`auth.token\`, \`auth.tokens\`) the service serves requests from its own machine only: it refuses to
listen on another address, and it refuses requests that a web page of another origin or another machine sends.
\`auth.allowAnonymous: true\` lifts both. More: [security](security.md).
`;

/** The text of docs/configuration.md. */
export function documentConfig(): string {
  const sections = new Map<string, ConfigKey[]>();
  for (const key of CONFIG_KEYS) {
    const name = key.path[0] ?? '';
    sections.set(name, [...(sections.get(name) ?? []), key]);
  }
  const parts = [...sections].map(([name, keys]) => {
    const description = Object.entries(CONFIG_SCHEMA.properties).find(([part]) => part === name)?.[1]
      .description;
    return [`## \`${name}\``, description, ...keys.flatMap(documentKey)].join('\n\n');
  });
  return `${[HEAD.trimEnd(), ...parts].join('\n\n')}\n`;
}

function documentItems({ items }: KeySchema): string[] {
  if (items?.type !== 'object') return [];
  return Object.entries(items.properties).map(([field, { expected, secret }]) => {
    const need = items.required.includes(field) ? 'required' : 'optional';
    return `- \`${field}\`: ${expected}; ${need}${secret ? '; secret' : ''}`;
  });
}

function documentKey({ name, variable, nomadVariable, schema }: ConfigKey): string[] {
  const fallback = schema.default === undefined ? 'none' : `\`${JSON.stringify(schema.default)}\``;
  const variables = [variable, nomadVariable]
    .filter((each) => each !== undefined)
    .map((each) => `\`${each}\``);
  return [
    `### \`${name}\``,
    schema.description,
    [
      `- Accepts ${expectedOf(schema)}; default ${fallback}; ${schema.reload}${schema.secret ? '; secret' : ''}`,
      `- Variable ${variables.join(' or ')}`,
      ...documentItems(schema),
    ].join('\n'),
  ];
}
