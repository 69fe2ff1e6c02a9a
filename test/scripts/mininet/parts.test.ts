import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parseDevices, parseSocketDrops } from '../../../scripts/mininet/counters.ts';
import { parseMininetOptions, type RawMininetOptions } from '../../../scripts/mininet/options.ts';
import { lossesIn, switchCommand } from '../../../scripts/mininet/switches.ts';
import { requireTools } from '../../../scripts/mininet/tools.ts';
import { foreignPolicy, switchAddresses } from '../../../scripts/run-controller.ts';
import { loadTopology } from '../../../topologies/load.ts';
import { planMininet } from '../../../topologies/mininet/plan.ts';
import { withServers } from '../../../topologies/servers.ts';

const FILE = fileURLToPath(new URL('../../../topologies/leaf-spine.yaml', import.meta.url));
const leafSpine = loadTopology(readFileSync(FILE, 'utf8'), 'leaf-spine.yaml');
const parse = (raw: RawMininetOptions) => parseMininetOptions(raw, leafSpine);

describe('options of ddf mininet', () => {
  it('has defaults for either switch', () => {
    expect(parse({})).toMatchObject({
      switchKind: 'embedded',
      hostRate: 100e6,
      servers: 16,
      loss: 1,
      object: undefined,
    });
    expect(parse({ switch: 'bmv2' })).toMatchObject({ switchKind: 'bmv2', hostRate: 50e6 });
    expect(parse({ job: 'demo' }).object).toBeUndefined();
    expect(parse({ job: 'FILE', base: 'OLD', servers: '8' })).toMatchObject({
      object: 'FILE',
      base: 'OLD',
      servers: 8,
      cohorts: { current: 5, delta: 2, full: 1 },
    });
    expect(parse({ rate: '2.5' }).hostRate).toBe(2.5e6);
  });

  it.each([
    [{ switch: 'tofino' }, '--switch tofino: not one of embedded, bmv2'],
    [{ rate: '0.5' }, '--rate 0.5: not a number of Mb/s from 1 to 10000'],
    [{ rate: '1e3' }, '--rate 1e3'],
    [{ sockets: 'raw' }, '--sockets raw: not batched or dgram'],
    [{ base: 'OLD' }, '--base names the version before a --job FILE'],
    [{ job: 'demo', base: 'OLD' }, '--base names the version before a --job FILE'],
    [{ servers: '0' }, '--servers 0'],
    [{ loss: '31' }, '--loss 31'],
  ] as [RawMininetOptions, string][])('%j is refused', (raw, message) => {
    expect(() => parse(raw)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) }),
    );
  });
});

describe('commands of switches', () => {
  const topology = withServers(leafSpine, 4);
  const plan = planMininet(topology, { runId: '00ff', networkIndex: 0 });
  const leaf = plan.nodes.find(({ name }) => name === 'leaf1')!;
  const spine = plan.nodes.find(({ name }) => name === 'spine1')!;
  const shown = (command: readonly string[]): string =>
    command
      .join(' ')
      .replace(process.execPath, 'node')
      .replace(/\S*\/scripts\//, 'scripts/');

  it('are, for bmv2 and the embedded switch', () => {
    const loss = { percent: 1, seed: 7 };
    expect(
      [leaf, spine].flatMap((node) =>
        (['bmv2', 'embedded'] as const).map((kind) => shown(switchCommand(kind, plan, node, loss))),
      ),
    ).toMatchSnapshot();
  });

  it('lose nothing when there is nothing to lose', () => {
    expect(switchCommand('embedded', plan, leaf, { percent: 0, seed: 7 })).not.toContain('--loss');
  });

  it('tell of their losses at the end', () => {
    const port = { impairedIn: { lost: 3 }, impairedOut: undefined, ringDropped: 2, queueDropped: 4 };
    const report = JSON.stringify({ deviceId: '1', ports: [port, port] });
    expect(lossesIn(`{"ready":true}\n${report}\n`)).toEqual({ onPurpose: 6, overflow: 12 });
    expect(lossesIn('Calling target program-options parser\n')).toBeUndefined();
    expect(lossesIn('')).toBeUndefined();
  });
});

describe("the kernel's counters", () => {
  it('are read by device', () => {
    const text = [
      'Inter-|   Receive                                                |  Transmit',
      ' face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed',
      '    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0',
      'ddf00ff0123: 8342000    1000    0    7    0     0          0         0  64000    1100    0    0    0     0       0          0',
      '',
    ].join('\n');
    expect(parseDevices(text).get('ddf00ff0123')).toEqual({
      receivedBytes: 8342000,
      receivedFrames: 1000,
      sentBytes: 64000,
      sentFrames: 1100,
    });
  });

  it('tell of full socket buffers', () => {
    const text = 'Ip: Forwarding\nIp: 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 9 1 6 8 5\n';
    expect(parseSocketDrops(text)).toBe(5);
    expect(parseSocketDrops('')).toBe(0);
  });
});

describe('tools', () => {
  it('are named all at once when they are missing', () => {
    const tool = (name: string, found: string | undefined) => ({ name, found, neededFor: 'x', remedy: `get ${name}` });
    expect(() => requireTools([tool('a', 'yes'), tool('b', undefined), tool('c', undefined)])).toThrow(
      expect.objectContaining({
        code: 'MISSING_TOOL',
        message: 'this needs b, c',
        remedy: expect.stringContaining('get b; get c'),
      }),
    );
    expect(() => requireTools([tool('a', 'yes')])).not.toThrow();
  });
});

describe('where a controller finds its switches', () => {
  const names = leafSpine.switches.map(({ name }) => name);

  it('is said one by one or by consecutive ports', () => {
    expect(switchAddresses({ switchBasePort: '9559' }, leafSpine)).toEqual(
      names.map((name, i) => ({ name, address: `127.0.0.1:${9559 + i}` })),
    );
    const list = [...names].reverse().map((name, i) => `${name}=10.0.0.${i}:9559`);
    expect(switchAddresses({ switches: list.join(',') }, leafSpine)[0]).toEqual({
      name: 'spine1',
      address: '10.0.0.5:9559',
    });
  });

  it.each([
    [{}, 'either --switches or --switch-base-port'],
    [{ switches: 'leaf1=a:1', switchBasePort: '1' }, 'either --switches or --switch-base-port'],
    [{ switchBasePort: '65534' }, '--switch-base-port 65534'],
    [{ switches: 'leaf1' }, '--switches: "leaf1" is not NAME=HOST:PORT'],
    [{ switches: 'leaf1=localhost' }, '--switches leaf1 localhost: not HOST:PORT'],
    [{ switches: 'leaf9=localhost:1' }, 'has no switch "leaf9"'],
    [{ switches: 'leaf1=localhost:1,leaf1=localhost:2' }, 'leaf1 is given twice'],
    [{ switches: 'leaf1=localhost:1' }, 'no address is given for spine1'],
  ])('%j is refused', (raw, message) => {
    expect(() => switchAddresses(raw, leafSpine)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) }),
    );
  });
});

describe("entries that are not the controller's", () => {
  it('are removed, kept or adopted by a mark', () => {
    expect(foreignPolicy()).toBe('remove');
    expect(foreignPolicy('keep')).toBe('keep');
    expect(foreignPolicy('adopt:0xddf1')).toEqual({ adopt: 0xddf1n });
    expect(foreignPolicy('adopt:18446744073709551615')).toEqual({ adopt: (1n << 64n) - 1n });
  });

  it.each(['', 'adopt', 'adopt:', 'adopt:0', 'adopt:18446744073709551616', 'adopt:x'])('"%s" is refused', (text) => {
    expect(() => foreignPolicy(text)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(`"${text}"`) }),
    );
  });
});
