import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runStf } from '../../lab/stf/run.ts';
import { parseStf } from '../../lab/stf/script.ts';
import { embeddedSwitch } from './embedded.ts';

const read = (name: string): Buffer => readFileSync(new URL(`programs/header-kinds.${name}`, import.meta.url));

describe('stacks, unions, varbits and wide keys as p4c compiles them', () => {
  it('do what header-kinds.stf says', () => {
    runStf(parseStf(read('stf').toString(), 'header-kinds.stf'), read('json'));
  });

  it('are parsed by what the control plane puts into a value set', () => {
    const device = embeddedSwitch({ bmv2Json: read('json'), p4Info: '' });
    const passed = (): string => {
      device.inject(0, Uint8Array.of(9, 1, 7));
      return device
        .takeSent()
        .map(({ port, frame }) => `${port} ${Buffer.from(frame).toString('hex')}`)
        .join();
    };
    expect(passed()).toBe('5 090107');
    const [set] = device.program.valueSets.values();
    set!.setMembers([[{ kind: 'exact', value: 9n }]]);
    expect(passed()).toBe('4 0900fd000000000000000000000000000007');
    set!.setMembers([]);
    expect(passed()).toBe('5 090107');
  });
});
