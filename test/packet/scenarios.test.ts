import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createPipeline } from '../../controller/p4runtime/pipeline.ts';
import { PORT_CPU } from '../../p4/build/constants.ts';
import { BUILD_DIRECTORY } from '../../scripts/p4-build.ts';
import { parseP4InfoText } from '../../wire/p4runtime/p4info-text.ts';
import { findSimpleSwitch } from './bmv2/process.ts';
import { SimpleSwitch, simpleSwitchCannot } from './bmv2/switch.ts';
import { embeddedSwitch } from './embedded.ts';
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
    const read = (name: string): Buffer => readFileSync(join(BUILD_DIRECTORY, name));
    const pipeline = createPipeline(parseP4InfoText(read('fabric.p4info.txtpb').toString('utf8')), read('fabric.json'));

    for (const name of scripts) {
      const path = join(SCENARIOS, name);
      const reason = whyNot(simpleSwitchCannot, path);
      it.skipIf(reason !== undefined)(reason === undefined ? name : `${name}: ${reason}`, async () => {
        const device = await SimpleSwitch.start(bmv2!, pipeline, PORT_CPU);
        try {
          await runScript(device, path);
        } finally {
          await device.close();
        }
      });
    }
  },
);
