import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DdfError } from '../../base/errors.ts';
import { loadTopology } from '../../topologies/load.ts';
import { withServers } from '../../topologies/servers.ts';

const LEAF_SPINE = readFileSync(new URL('../../topologies/leaf-spine.yaml', import.meta.url), 'utf8');

function failure(text: string): { message: string; where: string | undefined } {
  try {
    loadTopology(text, 'fabric.yaml');
  } catch (error) {
    expect(error).toBeInstanceOf(DdfError);
    const { code, message, where } = error as DdfError;
    expect(code).toBe('INVALID_TOPOLOGY');
    return { message, where };
  }
  throw new Error('the topology was accepted');
}

/** Two leaves and a spine; `lines` replaces lines by their number. */
function fabric(lines: Record<number, string> = {}): string {
  const text = [
    'name: small',
    'mtu: 1500 B',
    'switches:',
    '  - name: leaf{1..2}',
    '    layer: leaf',
    '  - name: spine1',
    '    layer: spine',
    'hosts:',
    '  - name: gpu{1..4}',
    '    kind: gpu-server',
    '    switch: leaf{1..2}',
    '    link: { rate: 1 Gb/s, delay: 10 us, queue: 64 frames }',
    'links:',
    '  - between: leaf{1..2}',
    '    and: spine1',
    '    link: { rate: 2.5 Gb/s, delay: 1 ms, queue: 64 frames }',
  ];
  for (const [number, line] of Object.entries(lines)) text[Number(number) - 1] = line;
  return text.join('\n');
}

describe('the leaf-spine fabric', () => {
  const topology = loadTopology(LEAF_SPINE, 'leaf-spine.yaml');

  it('has the parts that the product promises', () => {
    expect(topology.mtuBytes).toBe(9000);
    expect(topology.switches.map(({ name, deviceId, layer, ip }) => [name, deviceId, layer, ip])).toEqual([
      ['spine1', 1, 'spine', '10.0.0.1'],
      ['spine2', 2, 'spine', '10.0.0.2'],
      ['leaf1', 3, 'leaf', '10.1.0.1'],
      ['leaf2', 4, 'leaf', '10.2.0.1'],
      ['leaf3', 5, 'leaf', '10.3.0.1'],
      ['leaf4', 6, 'leaf', '10.4.0.1'],
    ]);
    for (const leaf of ['leaf1', 'leaf2', 'leaf3', 'leaf4']) {
      const hosts = topology.hosts.filter((host) => host.switch === leaf);
      expect(hosts.map((host) => host.port)).toEqual(Array.from({ length: 17 }, (_, i) => i + 1));
      expect(hosts.filter((host) => host.kind === 'gpu-server')).toHaveLength(16);
    }
    expect(topology.hosts.find((host) => host.name === 'gpu17')).toEqual({
      name: 'gpu17',
      kind: 'gpu-server',
      switch: 'leaf2',
      port: 2,
      mac: '02:00:00:02:00:02',
      ip: '10.2.1.2',
      link: { rateBitsPerSecond: 1e9, delayUs: 10, queueFrames: 256 },
    });
    expect(topology.links).toHaveLength(8);
    expect(topology.links[1]).toEqual({
      a: { switch: 'leaf1', port: 19 },
      b: { switch: 'spine2', port: 1 },
      link: { rateBitsPerSecond: 4e9, delayUs: 10, queueFrames: 512 },
    });
  });

  it('gives no port, name or address twice', () => {
    for (const count of [1, 16, 64, 1000]) {
      const { hosts, switches, links } = withServers(topology, count);
      const ends = [...hosts, ...links.flatMap(({ a, b }) => [a, b])].map((end) => `${end.switch}:${end.port}`);
      for (const values of [
        ends,
        [...hosts, ...switches].map((node) => node.name),
        [...hosts, ...switches].map((node) => node.ip),
        [...hosts, ...switches].map((node) => node.mac),
      ])
        expect(new Set(values).size).toBe(values.length);
    }
  });
});

describe('withServers', () => {
  const topology = loadTopology(LEAF_SPINE, 'leaf-spine.yaml');

  it('is the file itself for the number in the file', () => {
    expect(withServers(topology, 64)).toEqual(topology);
  });

  it('spreads servers evenly, the first leaves take the remainder', () => {
    const servers = withServers(topology, 6).hosts.filter((host) => host.kind === 'gpu-server');
    expect(servers.map((host) => `${host.name} ${host.switch}:${host.port}`)).toEqual([
      'gpu01 leaf1:2',
      'gpu02 leaf1:3',
      'gpu03 leaf2:2',
      'gpu04 leaf2:3',
      'gpu05 leaf3:2',
      'gpu06 leaf4:2',
    ]);
  });

  it('fills the leaves to their last port and not further', () => {
    const most = 4 * (509 - 1 - 2);
    expect(withServers(topology, most).hosts.at(-1)?.name).toBe('gpu2024');
    expect(() => withServers(topology, most + 1)).toThrow(/leaf1 has more attachments than ports/);
  });

  it('refuses what is no number of servers', () => {
    for (const count of [0, -1, 1.5, Number.NaN]) expect(() => withServers(topology, count)).toThrow(DdfError);
  });
});

describe('a topology file', () => {
  it('may fix ports and have one switch only', () => {
    const topology = loadTopology(
      [
        'name: single',
        'mtu: 9000 B',
        'switches: [{ name: leaf1, layer: leaf }]',
        'hosts:',
        '  - { name: mn1, kind: memory-node, switch: leaf1, link: &link { rate: 100 Mb/s, delay: 0 us, queue: 1 frames } }',
        '  - { name: gpu1, kind: gpu-server, switch: leaf1, port: 1, link: *link }',
      ].join('\n'),
      'single.yaml',
    );
    expect(topology.hosts.map((host) => [host.name, host.port])).toEqual([
      ['mn1', 2],
      ['gpu1', 1],
    ]);
    expect(topology.hosts[1]?.link.rateBitsPerSecond).toBe(1e8);
  });

  it('takes explicit link ports in order on either side', () => {
    const { links } = loadTopology(
      fabric({ 16: '    ports: [10, 4]\n    link: { rate: 1 Gb/s, delay: 1 us, queue: 9 frames }' }),
      'x',
    );
    expect(links.map(({ a, b }) => [a.switch, a.port, b.port])).toEqual([
      ['leaf1', 10, 4],
      ['leaf2', 10, 5],
    ]);
  });

  it.each<[string, Record<number, string>, string, RegExp]>([
    ['an unknown field', { 10: '    sort: gpu-server' }, 'fabric.yaml:10 hosts[0].sort', /unknown field "sort"/],
    [
      'an unknown field of a link',
      { 12: '    link: { rate: 1 Gb/s, delay: 10 us, queue: 64 frames, loss: 1 }' },
      'fabric.yaml:12 hosts[0].link.loss',
      /unknown field/,
    ],
    ['a missing field', { 2: '' }, 'fabric.yaml:1', /"mtu" is missing/],
    ['a field twice', { 2: 'name: again' }, 'fabric.yaml:2', /not valid YAML/],
    ['a duplicate switch', { 6: '  - name: leaf2' }, 'fabric.yaml:6 switches[1].name', /"leaf2" is used twice/],
    [
      'a host named like a switch',
      { 9: '  - name: leaf{2..3}' },
      'fabric.yaml:9 hosts[0].name',
      /"leaf2" is used twice/,
    ],
    ['an unknown switch', { 11: '    switch: leaf{2..3}' }, 'fabric.yaml:11 hosts[0].switch', /unknown switch "leaf3"/],
    [
      'an unknown switch of a link',
      { 15: '    and: spine9' },
      'fabric.yaml:15 links[0].and',
      /unknown switch "spine9"/,
    ],
    ['a host on a spine', { 11: '    switch: spine1' }, 'fabric.yaml:11 hosts[0].switch', /spine switch/],
    [
      'hosts that do not spread',
      { 9: '  - name: gpu{1..3}' },
      'fabric.yaml:11 hosts[0].switch',
      /do not spread evenly/,
    ],
    ['a range backwards', { 9: '  - name: gpu{4..1}' }, 'fabric.yaml:9 hosts[0].name', /backwards/],
    ['a range too long', { 9: '  - name: gpu{1..99999999}' }, 'fabric.yaml:9 hosts[0].name', /more than/],
    ['a range that is none', { 9: '  - name: gpu{1..' }, 'fabric.yaml:9 hosts[0].name', /not a name or a range/],
    ['a name with a space', { 9: '  - name: gpu 1' }, 'fabric.yaml:9 hosts[0].name', /is not a name/],
    [
      'a kind that is none',
      { 10: '    kind: gpu' },
      'fabric.yaml:10 hosts[0].kind',
      /not one of memory-node, gpu-server/,
    ],
    ['a layer that is none', { 5: '    layer: tor' }, 'fabric.yaml:5 switches[0].layer', /not one of/],
    [
      'a rate without a unit',
      { 16: '    link: { rate: 1000, delay: 1 ms, queue: 64 frames }' },
      'fabric.yaml:16 links[0].link.rate',
      /a number and a unit/,
    ],
    [
      'a unit of something else',
      { 16: '    link: { rate: 1 us, delay: 1 ms, queue: 64 frames }' },
      'fabric.yaml:16 links[0].link.rate',
      /a number and a unit/,
    ],
    [
      'a unit named like a property of objects',
      { 16: '    link: { rate: 1 constructor, delay: 1 ms, queue: 64 frames }' },
      'fabric.yaml:16 links[0].link.rate',
      /a number and a unit/,
    ],
    [
      'half a frame',
      { 16: '    link: { rate: 1 Gb/s, delay: 1 ms, queue: 1.5 frames }' },
      'fabric.yaml:16 links[0].link.queue',
      /no whole number/,
    ],
    [
      'a queue of nothing',
      { 16: '    link: { rate: 1 Gb/s, delay: 1 ms, queue: 0 frames }' },
      'fabric.yaml:16 links[0].link.queue',
      /outside/,
    ],
    ['an MTU too large', { 2: 'mtu: 70000 B' }, 'fabric.yaml:2 mtu', /outside 576..65535/],
    [
      'a port out of range',
      { 11: '    switch: leaf{1..2}\n    port: 510' },
      'fabric.yaml:12 hosts[0].port',
      /in 1..509/,
    ],
    [
      'ports beyond the last',
      { 11: '    switch: leaf{1..2}\n    port: 509' },
      'fabric.yaml:12 hosts[0].port',
      /gpu2 would get port 510/,
    ],
    [
      'a port used twice',
      {
        16: '    ports: [2, 1]\n    link: &l { rate: 1 Gb/s, delay: 1 ms, queue: 9 frames }\n  - between: leaf1\n    and: spine1\n    ports: [2, 7]\n    link: *l',
      },
      'fabric.yaml:20 links[1].ports',
      /port 2 of leaf1 is used twice: by the link to spine1 and by the link to spine1/,
    ],
    ['a switch linked with itself', { 15: '    and: leaf2' }, 'fabric.yaml:15 links[0].and', /linked with itself/],
    ['an island', { 14: '  - between: leaf1' }, 'fabric.yaml:4 switches[0].name', /no path leads from leaf1 to leaf2/],
    ['a list where a mapping belongs', { 12: '    link: [1]' }, 'fabric.yaml:12 hosts[0].link', /a mapping/],
    [
      'a mapping where a list belongs',
      { 4: '  name: leaf1', 5: '  layer: leaf', 6: '', 7: '' },
      'fabric.yaml:4 switches',
      /a list/,
    ],
    ['an empty field', { 10: '    kind:' }, 'fabric.yaml:10 hosts[0].kind', /text is expected/],
    ['broken YAML', { 12: '    link: { rate: 1 Gb/s' }, 'fabric.yaml:13', /not valid YAML/],
  ])('is refused with its place: %s', (_, lines, where, message) => {
    const error = failure(fabric(lines));
    expect(error.message).toMatch(message);
    expect(error.where).toBe(where);
  });

  it('is refused when empty', () => {
    expect(failure('').where).toBe('fabric.yaml:1');
    expect(failure('just text').message).toMatch(/a mapping/);
  });
});
