import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  CONFORMANCE_DIRECTORY,
  compilerVersion,
  conformanceFiles,
  findCompiler,
  readBuildRecord,
} from '../../scripts/p4-build.ts';

const compiler = findCompiler();
/** Another release numbers nodes differently. */
const whyNotCompared = ((): string | undefined => {
  if (compiler === undefined) return 'no p4c on the PATH';
  const [here, built] = [compilerVersion(compiler), readBuildRecord().p4cVersion];
  return here === built ? undefined : `made by p4c ${built}, here is ${here}`;
})();

it.skipIf(whyNotCompared !== undefined)(
  `the programs of the conformance checks are what p4c makes of their sources${whyNotCompared === undefined ? '' : ` (skipped: ${whyNotCompared})`}`,
  () => {
    for (const [name, text] of conformanceFiles(compiler!))
      expect(readFileSync(join(CONFORMANCE_DIRECTORY, name), 'utf8'), name).toBe(text);
  },
);
