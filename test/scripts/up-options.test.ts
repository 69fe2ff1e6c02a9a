import { describe, expect, test } from 'vitest';
import { parseUpOptions as parse, type RawUpOptions } from '../../scripts/up-options.ts';

const parseUpOptions = (raw: RawUpOptions) => parse(raw, 64);

const cohortsOf = (raw: RawUpOptions) => {
  const { current, delta, full } = parseUpOptions(raw).cohorts;
  return [current, delta, full];
};

test('the defaults are the main job', () => {
  expect(parseUpOptions({})).toEqual({
    object: undefined,
    base: undefined,
    servers: 64,
    cohorts: { current: 40, delta: 16, full: 8 },
    loss: 1,
    seed: 1,
    topology: undefined,
    port: 0,
    serve: false,
    json: false,
  });
});

describe('--cohorts', () => {
  test('commas are servers, colons a ratio', () => {
    expect(cohortsOf({ cohorts: '0,0,64', servers: '64' })).toEqual([0, 0, 64]);
    expect(cohortsOf({ cohorts: '0:0:1', servers: '16' })).toEqual([0, 0, 16]);
    expect(cohortsOf({ cohorts: '5:2:1', servers: '8' })).toEqual([5, 2, 1]);
  });

  test('absolute numbers say how many servers there are', () => {
    expect(parseUpOptions({ cohorts: '3,2,1' }).servers).toBe(6);
  });

  test('every server of a ratio is in some cohort', () => {
    for (let servers = 1; servers <= 64; servers++) {
      const [current, delta, full] = cohortsOf({ servers: String(servers) }) as [number, number, number];
      expect(current + delta + full).toBe(servers);
    }
    expect(cohortsOf({ servers: '1' })).toEqual([1, 0, 0]);
    expect(cohortsOf({ servers: '10' })).toEqual([6, 3, 1]);
  });

  test("without a base version of the user's file nobody needs a delta", () => {
    expect(cohortsOf({ object: 'a.bin' })).toEqual([40, 0, 24]);
    expect(cohortsOf({ object: 'a.bin', base: 'b.bin' })).toEqual([40, 16, 8]);
    expect(() => parseUpOptions({ object: 'a.bin', cohorts: '1,1,1' })).toThrow(/needs a version that servers hold/);
  });

  test.each([
    ['1,2', /three whole numbers/],
    ['1,2,3,4', /three whole numbers/],
    ['a,b,c', /three whole numbers/],
    ['-1,2,3', /three whole numbers/],
    ['1.5,2,3', /three whole numbers/],
    ['', /three whole numbers/],
    ['0,0,0', /all three are 0/],
    ['0:0:0', /all three are 0/],
    ['40,16,9', /these are 65 servers, --servers says 64/],
  ])('refuses %j', (cohorts, problem) => {
    expect(() => parseUpOptions({ cohorts, servers: '64' })).toThrow(problem);
  });

  test('refuses more servers than one process takes', () => {
    expect(() => parseUpOptions({ cohorts: '100,100,100' })).toThrow(/300 servers/);
  });
});

test.each<[RawUpOptions, RegExp]>([
  [{ servers: '0' }, /--servers 0: not a whole number from 1 to 256/],
  [{ servers: '257' }, /from 1 to 256/],
  [{ servers: '6.5' }, /from 1 to 256/],
  [{ servers: '1e2' }, /from 1 to 256/],
  [{ loss: '-1' }, /--loss -1: not a number of per cent from 0 to 30/],
  [{ loss: '31' }, /from 0 to 30/],
  [{ loss: 'much' }, /from 0 to 30/],
  [{ loss: '' }, /from 0 to 30/],
  [{ seed: '-1' }, /--seed -1: not a whole number from 0 to 4294967295/],
  [{ seed: 'x' }, /from 0 to 4294967295/],
  [{ port: '65536' }, /--port 65536: not a whole number from 0 to 65535/],
  [{ base: 'b.bin' }, /--base names the version before an --object/],
])('refuses %j', (raw, problem) => {
  expect(() => parseUpOptions(raw)).toThrow(problem);
});

test('without --servers there are as many as the topology has', () => {
  expect(parse({}, 8)).toMatchObject({ servers: 8, cohorts: { current: 5, delta: 2, full: 1 } });
  expect(parse({ cohorts: '1:1:0' }, 8).cohorts).toEqual({ current: 4, delta: 4, full: 0 });
  expect(parse({ servers: '16' }, 8).servers).toBe(16);
});

test('takes the limits themselves', () => {
  expect(parseUpOptions({ servers: '256', loss: '30', seed: '4294967295', port: '65535' })).toMatchObject({
    servers: 256,
    loss: 30,
    seed: 4294967295,
    port: 65535,
  });
  expect(parseUpOptions({ servers: '1', loss: '0', seed: '0' })).toMatchObject({ servers: 1, loss: 0, seed: 0 });
  expect(parseUpOptions({ loss: '0.5' }).loss).toBe(0.5);
});
