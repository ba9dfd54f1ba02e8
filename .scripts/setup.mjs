/**
 * Set-up before a command of package.json: installs the packages and, with --build, compiles lib/ into dist/.
 *
 * Uses Node's own modules only, since it runs when nothing is installed yet. Both steps are skipped while their
 * stamp (a hash of their inputs, kept beside their output) is current, so a second run starts nothing.
 */
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const at = (...parts) => path.join(root, ...parts);

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

function hashOf(files) {
  const hash = createHash('sha256').update(process.version);
  for (const file of files) hash.update(`\0${path.relative(root, file)}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

function run(what, command, args) {
  console.error(`serai: ${what} …`);
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (status === 0) return;
  console.error(`serai: ${what} failed${error ? `: ${error.message}` : ` with exit code ${status}`}`);
  process.exit(1);
}

/** Runs `step` unless `output` is there and `stamp` holds the hash of `inputs`. */
function unlessCurrent(stamp, output, inputs, step) {
  const wanted = hashOf(inputs);
  if (existsSync(output) && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  step();
  writeFileSync(stamp, wanted);
}

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`serai: needs Node.js 20.19 or newer, this is ${process.version}`);
  process.exit(1);
}

const manifests = [at('package.json'), at('package-lock.json')];
unlessCurrent(at('node_modules', '.serai-installed'), at('node_modules', 'typescript'), manifests, () =>
  run('installing packages', 'npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--include=dev']),
);

if (process.argv.includes('--build')) {
  const inputs = [
    at('tsconfig.json'),
    at('tsconfig.build.json'),
    at('package-lock.json'),
    ...filesBelow(at('lib')),
  ];
  unlessCurrent(at('dist', '.stamp'), at('dist', 'main.js'), inputs, () => {
    rmSync(at('dist'), { recursive: true, force: true });
    run('building', process.execPath, [
      at('node_modules', 'typescript', 'bin', 'tsc'),
      '-p',
      at('tsconfig.build.json'),
    ]);
  });
}
