import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createRandom, type Random } from '../../base/random.ts';
import { DROP_REASON_NAMES, PORT_CPU } from '../../p4/build/constants.ts';
import { findSimpleSwitch } from '../../scripts/simple-switch.ts';
import { SimpleSwitch } from './bmv2/switch.ts';
import { embeddedSwitch, fabricProgram } from './embedded.ts';
import { encodePacket, parsePacket } from './packet-text.ts';
import { runScript, type SentFrame } from './run.ts';
import { differences } from './same-switches.ts';

const STAGE = fileURLToPath(new URL('both.stf', import.meta.url));
const PACKETS = 3_000;

const bmv2 = findSimpleSwitch();

/** Values that decide something. */
const FIELDS: Readonly<Record<string, readonly (readonly [field: string, ...values: (number | string)[]])[]>> = {
  eth: [['type', 0x86dd, 0x88cc, 0x0806]],
  tag: [
    ['next', 0x0806, 0x88b5],
    ['hops', 0, 255],
    ['class', 3],
  ],
  ip: [
    ['src', '10.0.0.1', '10.0.0.2', '10.9.9.9'],
    ['ttl', 0, 1, 2, 255],
    ['ecn', 1, 2, 3],
    ['protocol', 1, 6, 17],
    ['version', 6],
    ['words', 4, 6, 15],
    ['mf', 1],
    ['offset', 1, 8191],
    ['checksum', 0, 0xffff],
    ['id', 0x6fcd, 0x26ce, 0x25ce],
  ],
  udp: [
    ['dport', 9, 56831, 56832, 57343, 57344, 'FABRIC_UDP_PORT'],
    ['sport', 0, 1000, 1001, 1002],
    ['checksum', 0x1234],
  ],
  tcp: [
    ['dport', 80, 81, 0x0150],
    ['sport', 8080],
  ],
  fabric: [
    ['type', 0, 4, 6, 7, 9, 15],
    ['tenant', 2, 0],
    ['hops', 14, 15, 16, 255],
    ['version', 0, 2],
    ['marks', 1, 255],
    ['queue', 7, 255],
  ],
};
const DESTINATIONS = [
  '10.0.0.2',
  '10.0.0.77',
  '10.1.0.2',
  '10.1.3.4',
  '10.1.7.1',
  '10.0.0.254',
  '224.0.0.1',
  '192.0.2.1',
  '198.51.100.1',
];
const SHAPES = [
  'udp',
  'udp',
  'tcp',
  'tcp',
  'ip',
  'eth',
  'options udp',
  'options tcp',
  'options fabric',
  'udp dport=56832',
  'udp dport=56832 ip mf=1',
];

function ordinary(random: Random): SentFrame {
  const words = ['ip', `dst=${pick(random, DESTINATIONS)}`, ...pick(random, SHAPES).split(' ')];
  return { port: pick(random, [1, 1, 1, 2, 3, 4, 5, 6, 0, 300]), frame: encode(random, words, 0.12) };
}

function ofTransfer(random: Random): SentFrame {
  const down = random.chance(0.3);
  const label = pick(random, [7, 7, 7, 7, 8, 9, 9, 10, 11, 12]);
  const type = down
    ? pick(random, ['DATA', 'REPAIR', 'REPAIR', 'SYNC', 'PROBE'])
    : pick(random, ['NACK', 'NACK', 'NACK', 'DONE', 'REPORT', 'PROBE']);
  const upstream = label === 8 || label === 11 ? 4 : 1;
  const port = down ? upstream : pick(random, [2, 2, 3, 3, 4, 5]);
  const words = ['fabric', `type=${type}`, `label=${label}`, `block=${pick(random, [3, 3, 115139, 4])}`];
  words.push(`need=${random.below(4)}`, `epoch=${random.below(2)}`);
  if (port >= 4) words.push('tag');
  return { port: random.chance(0.02) ? 1 + random.below(6) : port, frame: encode(random, words, 0.015) };
}

/** With other values in some fields, and sometimes cut or damaged. */
function encode(random: Random, words: readonly string[], chance: number): Uint8Array {
  const all = [...words];
  for (const layer of words.filter((word) => FIELDS[word] !== undefined)) {
    all.push(layer);
    for (const [field, ...values] of FIELDS[layer]!)
      if (random.chance(chance)) all.push(`${field}=${pick(random, values)}`);
  }
  if (random.chance(chance)) all.push('tag');
  all.push('payload', `bytes=${random.below(80)}`);
  const frame = encodePacket(parsePacket(all, new Map()));
  if (random.chance(chance)) return frame.subarray(0, 1 + random.below(frame.length));
  if (random.chance(chance)) frame[random.below(frame.length)]! ^= 1 << random.below(8);
  return frame;
}

function pick<T>(random: Random, values: readonly T[]): T {
  return values[random.below(values.length)]!;
}

/** The level of queues that are really there is not ours to know; it is a byte of packets that are addressed to the fabric's port. */
function withoutQueueLevel(frame: Uint8Array): Uint8Array {
  const copy = frame.slice();
  const tag = copy[12] === 0x88 && copy[13] === 0xb5 ? 18 : 0;
  const level = 14 + tag + 20 + 8 + 37;
  if (copy.length > level) copy[level] = 0;
  return copy;
}

describe.skipIf(bmv2 === undefined)(
  `the embedded switch and simple_switch_grpc${bmv2 === undefined ? ' (not on the PATH)' : ''}`,
  () => {
    it('send the same for any packet and count the same', async () => {
      const ours = embeddedSwitch();
      const theirs = await SimpleSwitch.start(bmv2!, fabricProgram(), PORT_CPU);
      try {
        await runScript(ours, STAGE);
        await runScript(theirs, STAGE);
        const random = createRandom('same switches');
        const frames = Array.from({ length: PACKETS }, () =>
          random.chance(0.6) ? ofTransfer(random) : ordinary(random),
        );
        expect(await differences(ours, theirs, frames, PORT_CPU, withoutQueueLevel)).toEqual([]);
        // The packets met what they are about, but for the meters: what they let through depends on real time.
        const drops = await ours.readCounter(ours.p4Info.counters.require('drop_counter'));
        const missed = drops.flatMap(({ packets }, reason) => (packets === 0n ? [DROP_REASON_NAMES[reason]] : []));
        expect(missed.filter((reason) => reason !== undefined)).toEqual(['none', 'control-rate', 'punt-rate']);
        for (const name of ['drop_counter', 'ingress_port_counter', 'egress_port_counter', 'transfer_egress_counter']) {
          const info = ours.p4Info.counters.require(name);
          expect(await theirs.readCounter(info), name).toEqual(ours.readCounter(info));
        }
      } finally {
        await theirs.close();
      }
    });
  },
);
