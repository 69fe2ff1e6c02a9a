// Installs the npm packages that are missing. Plain Node.js: it runs before any of them is there.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const PROJECT_DIRECTORY = dirname(dirname(fileURLToPath(import.meta.url)));

const MINIMUM_NODE = [20, 15];

/** Whether node_modules is what package-lock.json asks for: npm keeps a copy of what it installed in node_modules. */
function isInstalled() {
  const installed = join(PROJECT_DIRECTORY, 'node_modules', '.package-lock.json');
  if (!existsSync(installed)) return false;
  const wanted = JSON.parse(readFileSync(join(PROJECT_DIRECTORY, 'package-lock.json'), 'utf8')).packages;
  const present = JSON.parse(readFileSync(installed, 'utf8')).packages;
  return Object.entries(wanted).every(
    ([path, { version, optional }]) => path === '' || optional || present[path]?.version === version,
  );
}

/** Makes sure that the packages are there; ends the process with a reason when they cannot be. */
export function ensureInstalled() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor < MINIMUM_NODE[1])) {
    console.error(`Node.js ${MINIMUM_NODE.join('.')} or newer is needed, this is ${process.versions.node}.`);
    process.exit(1);
  }
  if (isInstalled()) return;
  console.error('Installing npm packages (once; two of them are compiled, which takes about two minutes) ...');
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const result = spawnSync(npm, ['ci', '--no-fund', '--no-audit'], { cwd: PROJECT_DIRECTORY, encoding: 'utf8' });
  if (result.status !== 0) {
    console.error(result.stdout ?? '', result.stderr ?? '', result.error?.message ?? '');
    console.error(
      'npm ci failed: see above. A C++ compiler, make and Python 3 must be there where no prebuilt binaries are.',
    );
    process.exit(1);
  }
}
