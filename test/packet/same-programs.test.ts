import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createRandom, type Random } from '../../base/random.ts';
import { PORT_CPU } from '../../p4/build/constants.ts';
import { findCompiler } from '../../scripts/p4-build.ts';
import { findSimpleSwitch } from '../../scripts/simple-switch.ts';
import type { ActionCall, MatchValue } from '../../switch/control.ts';
import { SimpleSwitch } from './bmv2/switch.ts';
import { type CompiledProgram, type EmbeddedSwitch, embeddedSwitch } from './embedded.ts';
import type { SentFrame } from './run.ts';
import { differences } from './same-switches.ts';

/**
 * The programs of other tests on both switches, with random packets: what those tests expect of the embedded switch is what
 * simple_switch_grpc does. Needs both it and p4c, for P4Info.
 */
const PROGRAMS = fileURLToPath(new URL('programs', import.meta.url));

const bmv2 = findSimpleSwitch();
const compiler = findCompiler();
const missing = [
  ...(bmv2 === undefined ? ['simple_switch_grpc'] : []),
  ...(compiler === undefined || compiler.isDriver ? ['p4c-bm2-ss'] : []),
];

function compile(name: string): CompiledProgram {
  const folder = mkdtempSync(join(tmpdir(), 'ddf-p4-'));
  try {
    const [json, info] = [join(folder, 'made.json'), join(folder, 'made.txt')];
    const made = spawnSync(compiler!.path, ['--std', 'p4-16', '--p4runtime-files', info, '-o', json, `${name}.p4`], {
      cwd: PROGRAMS,
      encoding: 'utf8',
    });
    expect(made.status, made.stderr).toBe(0);
    return { bmv2Json: readFileSync(json), p4Info: readFileSync(info, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function onBoth(
  name: string,
  body: (ours: EmbeddedSwitch, theirs: SimpleSwitch, random: Random) => Promise<void>,
): Promise<void> {
  const program = compile(name);
  const theirs = await SimpleSwitch.start(bmv2!, program, PORT_CPU);
  try {
    const ours = embeddedSwitch(program);
    // A time stamp of 0 means that there is none.
    ours.advance(1_000);
    await body(ours, theirs, createRandom(name));
  } finally {
    await theirs.close();
  }
}

function calculatedFrames(random: Random): SentFrame[] {
  return Array.from({ length: 1_500 }, (): SentFrame => {
    const frame = Buffer.from(Array.from({ length: 60 }, () => random.below(256)));
    frame[0] = (random.below(random.chance(0.2) ? 16 : 5) << 4) | random.below(16);
    if (random.chance(0.3)) frame.fill(random.chance(0.5) ? 0 : 0xff, 1 + random.below(20), 21);
    if (random.chance(0.7)) frame.writeUInt32BE(random.below(3) * 1000, 15);
    if (random.chance(0.3)) frame.writeUIntBE(0xabcde0, 21, 3);
    if (random.chance(0.3)) frame[24] = 0;
    return {
      port: 2,
      frame: Uint8Array.from(frame.subarray(0, random.chance(0.3) ? 21 + random.below(40) : 60)),
    };
  });
}

describe('what the embedded switch calculates', () => {
  it('is what simple_switch_grpc calculated for the same packets', () => {
    const bmv2Json = readFileSync(join(PROGRAMS, 'calculations.json'));
    const device = embeddedSwitch({ bmv2Json, p4Info: '' });
    const sent = createHash('sha256');
    for (const { port, frame } of calculatedFrames(createRandom('calculations'))) {
      device.inject(port, frame);
      for (const each of device.takeSent()) sent.update(each.frame);
    }
    expect(sent.digest('hex')).toBe('bae31dd8693499c908fbca0b492934896a227a592bf72fbbbdd366658f4f2ad9');
  });
});

describe.skipIf(missing.length > 0)(
  `what the embedded switch and simple_switch_grpc do${missing.length > 0 ? ` (${missing.join(', ')} not on the PATH)` : ''}`,
  () => {
    it('between their pipelines', async () => {
      await onBoth('path', async (ours, theirs, random) => {
        const digests: string[] = [];
        ours.program.onDigest = (digest, values) => digests.push(`${digest.name} ${values}`);
        await theirs.sendDigests();
        for (const device of [ours.program, theirs]) {
          await device.setCloneSession(5, [{ port: 3, instance: 7 }], 0);
          await device.setMulticastGroup(1, [
            { port: 1, instance: 11 },
            { port: 6, instance: 12 },
          ]);
        }
        const frames: SentFrame[] = [];
        while (frames.length < 1_500) {
          const [op, value] = [random.below(35), random.below(random.chance(0.5) ? 4 : 256)];
          // It ends the process where an assertion does not hold.
          if (op === 34 && (value === 1 || value === 2)) continue;
          const payload = Array.from({ length: 18 }, () => random.below(256));
          const port = [9, 9, 4, 0, 1, 300][random.below(6)]!;
          const frame = Uint8Array.from([op, value, ...payload]);
          // Shorter ones would come around for ever.
          frames.push({ port, frame: random.chance(0.05) ? frame.subarray(0, 12 + random.below(8)) : frame });
        }
        expect(await differences(ours, theirs, frames, PORT_CPU)).toEqual([]);
        // The same data is not sent again before it is acknowledged (P4Runtime, `ack_timeout_ns`).
        const learned = new Set(digests);
        expect(learned.size).toBeGreaterThan(20);
        expect([...(await theirs.takeDigests(learned.size))].sort()).toEqual([...learned].sort());
      });
    });

    it('when they calculate', async () => {
      await onBoth('calculations', async (ours, theirs, random) => {
        const frames = calculatedFrames(random);
        expect(await differences(ours, theirs, frames, PORT_CPU)).toEqual([]);
      });
    });

    it('with stacks, unions, fields of variable length and saturating numbers', async () => {
      await onBoth('header-kinds', async (ours, theirs, random) => {
        const insert = async (table: string, match: MatchValue[], priority: number, name: string, params: bigint[]) => {
          const info = ours.p4Info.tables.require(table);
          const action = { action: ours.p4Info.actions.require(name).name, params };
          for (const device of [ours, theirs]) await device.insert({ table: info, match, priority, action });
        };
        await insert('labels', [{ kind: 'exact', value: 1n }], 0, 'push_label', [9n]);
        await insert('labels', [{ kind: 'exact', value: 2n }], 0, 'pop_label', []);
        const level = (mask: bigint): MatchValue[] => [
          { kind: 'ternary', value: 0n, mask },
          { kind: 'range', low: 3n, high: 12n },
        ];
        await insert('levels', level(8n), 20, 'set_level', [0x5000n]);
        await insert('levels', level(1n), 10, 'set_level', [0x9000n]);
        const large = 0xfdn << 120n;
        await insert('route', [{ kind: 'lpm', value: large, prefixLength: 9 }], 0, 'forward', [6n]);
        const frames = Array.from({ length: 1_500 }, (): SentFrame => {
          const frame = Buffer.from(Array.from({ length: 60 }, () => random.below(256)));
          frame[0] = random.below(5);
          frame[1] = random.below(random.chance(0.1) ? 256 : frame[0] === 2 ? 36 : 4);
          if (frame[0] === 1)
            for (let at = 2; at < 26; at += 4) frame.writeUInt32BE((random.below(3) << 12) | random.below(512), at);
          if (random.chance(0.5)) frame[2] = 0xfd;
          return { port: 2, frame: Uint8Array.from(frame.subarray(0, 20 + random.below(41))) };
        });
        expect(await differences(ours, theirs, frames, PORT_CPU)).toEqual([]);
      });
    });

    it('with what hangs on entries', async () => {
      await onBoth('resources', async (ours, theirs, random) => {
        const names = [(7n << 64n) | 0x1234n, (8n << 64n) | 0x1234n, 0n];
        const address = 0x20010db8_0000_0000_0000_0000_0000_0001n;
        const insert = async (table: string, match: MatchValue[], priority: number, ...calls: ActionCall[]) => {
          const info = ours.p4Info.tables.require(table);
          const action =
            info.profile === undefined ? calls[0]! : { selector: calls.map((each) => ({ ...each, weight: 1 })) };
          for (const device of [ours, theirs]) await device.insert({ table: info, match, priority, action });
        };
        const call = (action: string, ...params: bigint[]) => ({ action: `ResourcesIngress.${action}`, params });
        const exact = (value: bigint): MatchValue => ({ kind: 'exact', value });
        await insert('named', [exact(names[0]!)], 0, call('metered', 1n));
        await insert('named', [exact(names[1]!)], 0, call('metered', 2n));
        await insert('counted', [exact(names[0]!)], 0, call('forward', 3n));
        await insert('counted', [exact(names[1]!)], 0, call('discard'));
        const high: MatchValue = { kind: 'ternary', value: (address >> 64n) << 64n, mask: ((1n << 64n) - 1n) << 64n };
        const flows = (low: bigint, last: bigint): MatchValue => ({ kind: 'range', low, high: last });
        await insert('addressed', [high, flows(3n, 9n)], 5, call('forward', 4n));
        await insert('addressed', [high, flows(0n, 0xffffn)], 4, call('forward', 5n));
        await insert('addressed', [{ kind: 'ternary', value: 1n, mask: 1n }, flows(0n, 7n)], 6, call('discard'));
        const lpm = (value: bigint, prefixLength: number): MatchValue => ({ kind: 'lpm', value, prefixLength });
        await insert('routed', [lpm(address, 128)], 0, call('forward', 6n));
        await insert('routed', [lpm((address >> 64n) << 64n, 64)], 0, call('forward', 1n));
        await insert('routed', [lpm(0n, 0)], 0, call('forward', 2n));
        await insert('spread', [exact(names[0]!)], 0, call('forward', 1n), call('forward', 2n), call('forward', 3n));
        await insert('spread', [exact(names[1]!)], 0, call('discard'), call('forward', 5n));
        for (const device of [ours, theirs])
          for (const cell of [0, 1, 3]) {
            const config = { cir: 1n, cburst: BigInt(2 * cell), pir: 1n, pburst: BigInt(5 + cell) };
            await device.configureMeter(ours.p4Info.meters.require('packets'), cell, config);
          }

        const frames = Array.from({ length: 1_000 }, (): SentFrame => {
          const frame = Buffer.alloc(30 + random.below(20), 0xff);
          frame[0] = random.below(8);
          const name = names[random.below(3)]!;
          const to = [address, address ^ 1n, address ^ 6n, address ^ (1n << 70n), 0n, 1n][random.below(6)]!;
          frame.write(name.toString(16).padStart(18, '0'), 1, 'hex');
          frame.write(to.toString(16).padStart(32, '0'), 10, 'hex');
          frame.writeUInt16BE(random.below(frame[0] === 6 ? 4 : 12), 26);
          return { port: 1 + random.below(4), frame: Uint8Array.from(frame) };
        });
        expect(await differences(ours, theirs, frames, PORT_CPU)).toEqual([]);
      });
    });
  },
);
