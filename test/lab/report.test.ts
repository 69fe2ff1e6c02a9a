import { expect, test } from 'vitest';
import {
  formatBytes,
  formatCount,
  formatSeconds,
  formatTable,
  type MainJobFigures,
  reportJson,
  reportText,
} from '../../lab/report.ts';

const FIGURES: MainJobFigures = {
  object: 'models/demo',
  version: 22,
  servers: 64,
  verified: 64,
  cohorts: { current: 40, delta: 16, full: 8 },
  objectBytes: 13_963_510,
  deltaBytes: 193_262,
  source: { bytes: 14_764_000, lowerBoundBytes: 14_156_772, unicastBytes: 335_124_240 },
  coreLinks: { bytes: 58_000_000, lowerBoundBytes: 56_000_000, unicastBytes: 500_000_000 },
  hostLinks: { bytes: 130_000_000, lowerBoundBytes: 128_000_000, unicastBytes: 670_248_480 },
  rangeReadBytes: 0,
  nacksSent: 312,
  nacksAtSource: 61,
  repairSymbols: 104,
  lostPackets: 1_402,
  packets: 140_000,
  phases: [
    { name: 'publish', seconds: 1.234_56 },
    { name: 'distribute', seconds: 12.345 },
  ],
  seconds: 13.579_6,
};

test('numbers read like numbers', () => {
  expect([0, 999, 1000, 13_963_510, 335_124_240, 999_600, 1e15].map(formatBytes)).toEqual([
    '0 B',
    '999 B',
    '1.00 kB',
    '13.96 MB',
    '335.1 MB',
    '1.00 MB',
    '1.00 PB',
  ]);
  expect([0, 999, 1000, 1_234_567].map(formatCount)).toEqual(['0', '999', '1,000', '1,234,567']);
  expect([0, 0.05, 0.0996, 1.234, 12.345].map(formatSeconds)).toEqual(['0 ms', '50 ms', '0.10 s', '1.23 s', '12.3 s']);
});

test('columns line up, numbers to the right', () => {
  expect(
    formatTable([
      ['a', 'bb', ''],
      ['long', '1', '22'],
    ]),
  ).toBe('a     bb\nlong   1  22');
  expect(formatTable([])).toBe('');
});

test('the report', () => {
  expect(reportText(FIGURES)).toMatchInlineSnapshot(`
    "bytes on the wires      measured  lower bound            unicast
    out of the source       14.76 MB     14.16 MB  1.043 x  335.1 MB  0.044 x
    links between switches  58.00 MB     56.00 MB  1.036 x  500.0 MB  0.116 x
    links to hosts          130.0 MB     128.0 MB  1.016 x  670.2 MB  0.194 x
    Measured: whole frames of all kinds. Lower bound: each payload once over each link of its tree, without headers.
    Unicast: 24 servers fetch 13.96 MB each.

    object                                          13.96 MB
    delta                                  193.3 kB (1.38 %)
    NACKs sent by servers                                312
    NACKs that reached the source                         61
    repair symbols                                       104
    packets lost on the wires      1,402 of 140,000 (1.00 %)
    read by range from holders                           0 B

    publish     1.23 s
    distribute  12.3 s

    models/demo version 22: verified by SHA-256 on 64/64 servers (40 had it, 16 by delta, 8 by the full image) in 13.6 s"
  `);
});

test('nothing to compare with is a dash, no delta says so', () => {
  const nothing = { bytes: 0, lowerBoundBytes: 0, unicastBytes: 0 };
  const text = reportText({ ...FIGURES, deltaBytes: 0, coreLinks: nothing, packets: 0, lostPackets: 0 });
  expect(text).toMatch(/links between switches +0 B +0 B +- +0 B +-/);
  expect(text).toMatch(/delta +none/);
  expect(text).toMatch(/0 of 0 \(0\.00 %\)/);
});

test('the JSON object has what scripts rely on', () => {
  expect(reportJson(FIGURES)).toMatchObject({
    servers: 64,
    verified: 64,
    cohorts: { current: 40, delta: 16, full: 8 },
    objectBytes: 13_963_510,
    deltaBytes: 193_262,
    sourceBytes: 14_764_000,
    unicastBytes: 335_124_240,
    linkBytes: 58_000_000,
    linkBytesLowerBound: 56_000_000,
    hostLinkBytes: 130_000_000,
    hostLinkBytesLowerBound: 128_000_000,
    nacksSent: 312,
    nacksAtSource: 61,
    repairSymbols: 104,
    lostPackets: 1_402,
    phases: { publish: 1.235, distribute: 12.345 },
    seconds: 13.58,
  });
});
