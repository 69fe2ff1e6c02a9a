// `npm test`: every check that this machine can run. Exits 0 only if all of them pass.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureInstalled, PROJECT_DIRECTORY } from './install.mjs';

ensureInstalled();

const scratch = mkdtempSync(join(tmpdir(), 'ddf-check-'));
const report = join(scratch, 'vitest.json');
const extra = process.argv.slice(2);

const steps = [
  ['type check', ['node_modules/typescript/bin/tsc', '-p', '.']],
  ['linter and formatter', ['node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.']],
  [
    'tests',
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
      ...extra,
    ],
  ],
];

let failed = 0;
for (const [name, command] of steps) {
  console.log(`\n== ${name}`);
  const { status } = spawnSync(process.execPath, command, { cwd: PROJECT_DIRECTORY, stdio: 'inherit' });
  if (status !== 0) {
    failed++;
    console.log(`-- ${name}: FAILED`);
  }
}

let counts = { passed: 0, failed: 0, skipped: 0 };
try {
  const { numPassedTests, numFailedTests, numPendingTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
  counts = { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests };
  const skipped = testResults.flatMap((file) =>
    file.assertionResults.filter((test) => test.status === 'pending' || test.status === 'skipped'),
  );
  if (skipped.length > 0) console.log('\nSkipped here:');
  for (const test of skipped) console.log(`  ${test.fullName}`);
} catch {
  failed++;
  console.log('The test runner left no report.');
}
rmSync(scratch, { recursive: true, force: true });
console.log(`\n${counts.passed} passed, ${Math.max(counts.failed, failed)} failed, ${counts.skipped} skipped`);
process.exit(failed === 0 && counts.failed === 0 ? 0 : 1);
