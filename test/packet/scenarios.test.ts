import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { PORT_CPU } from '../../p4/build/constants.ts';
import { findSimpleSwitch } from '../../scripts/simple-switch.ts';
import { SimpleSwitch, simpleSwitchCannot } from './bmv2/switch.ts';
import { embeddedSwitch, fabricProgram } from './embedded.ts';
import { runScript, whyNot } from './run.ts';

const SCENARIOS = fileURLToPath(new URL('scenarios', import.meta.url));
/** Sets the stage for the others. */
const STAGE = 'leaf.stf';

const scripts = readdirSync(SCENARIOS).filter((name) => name.endsWith('.stf') && name !== STAGE);

describe('packets through fabric.p4 on the embedded switch', () => {
  it('has scenarios', () => {
    expect(scripts.length).toBeGreaterThan(10);
  });

  it.each(scripts)('%s', async (name) => {
    await runScript(embeddedSwitch(), join(SCENARIOS, name));
  });
});

const bmv2 = findSimpleSwitch();

describe.skipIf(bmv2 === undefined)(
  `packets through fabric.p4 on simple_switch_grpc${bmv2 === undefined ? ' (not on the PATH)' : ''}`,
  () => {
    for (const name of scripts) {
      const path = join(SCENARIOS, name);
      const reason = whyNot(simpleSwitchCannot, path);
      // In real time a machine that is busy with something else may let an interval pass.
      it.skipIf(reason !== undefined)(reason === undefined ? name : `${name}: ${reason}`, { retry: 2 }, async () => {
        const device = await SimpleSwitch.start(bmv2!, fabricProgram(), PORT_CPU);
        try {
          await runScript(device, path);
        } finally {
          await device.close();
        }
      });
    }
  },
);
