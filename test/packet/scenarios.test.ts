import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { embeddedSwitch } from './embedded.ts';
import { runScript } from './run.ts';

const SCENARIOS = fileURLToPath(new URL('scenarios', import.meta.url));
/** Sets the stage for the others. */
const STAGE = 'leaf.stf';

const scripts = readdirSync(SCENARIOS).filter((name) => name.endsWith('.stf') && name !== STAGE);

describe('packets through fabric.p4 on the embedded switch', () => {
  it('has scenarios', () => {
    expect(scripts.length).toBeGreaterThan(10);
  });

  it.each(scripts)('%s', (name) => {
    runScript(embeddedSwitch(), join(SCENARIOS, name));
  });
});
