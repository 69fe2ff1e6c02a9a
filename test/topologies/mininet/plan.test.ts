import { describe, expect, it } from 'vitest';
import { loadTopology } from '../../../topologies/load.ts';
import { type MininetPlan, managementAddress, planMininet } from '../../../topologies/mininet/plan.ts';

const SMALL = `
name: small
mtu: 9000 B
switches:
  - { name: spine1, layer: spine }
  - { name: leaf1, layer: leaf }
hosts:
  - { name: mn1, kind: memory-node, switch: leaf1, link: { rate: 50 Mb/s, delay: 1 ms, queue: 256 frames } }
  - { name: a-gpu-server-with-a-long-name, kind: gpu-server, switch: leaf1, link: { rate: 25 Mb/s, delay: 1 ms, queue: 64 frames } }
links:
  - { between: leaf1, and: spine1, link: { rate: 200 Mb/s, delay: 1 ms, queue: 512 frames } }
`;

const topology = loadTopology(SMALL, 'small.yaml');
const options = { runId: '0a1b', networkIndex: 3 };

function devices(plan: MininetPlan): string[] {
  return [
    plan.management.bridge,
    ...plan.nodes.flatMap(({ management }) => [management.device, management.rootDevice]),
    ...plan.links.flatMap(({ a, b }) => [a.device, b.device]),
  ];
}

describe('the plan for Mininet', () => {
  it('is, for a small topology', () => {
    expect(planMininet(topology, options)).toMatchSnapshot();
  });

  it('names devices in 15 characters, each once, all with the prefix of the run', () => {
    const hosts = Array.from(
      { length: 400 },
      (_, i) => `  - { name: gpu${i}, kind: gpu-server, switch: leaf1, link: *l }`,
    );
    const large = loadTopology(
      `name: large\nmtu: 1500 B\nswitches: [{ name: leaf1, layer: leaf }]\nhosts:\n` +
        `  - { name: mn1, kind: memory-node, switch: leaf1, link: &l { rate: 1 Gb/s, delay: 0 us, queue: 9 frames } }\n${hosts.join('\n')}\n`,
      'large.yaml',
    );
    const names = devices(planMininet(large, options));
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^ddf0a1b[0-9a-fm]{1,8}$/);
    expect(Math.max(...names.map((name) => name.length))).toBe(15);
    // Two runs at a time do not meet.
    const others = new Set(devices(planMininet(large, { runId: '0a1c', networkIndex: 4 })));
    expect(names.some((name) => others.has(name))).toBe(false);
  });

  it('lets only links between switches carry the tag on top of the MTU', () => {
    const { nodes } = planMininet(topology, options);
    const mtus = (name: string): string[] =>
      nodes
        .find((node) => node.name === name)!
        .after.flatMap((command) => {
          const at = command.indexOf('mtu');
          return at < 0 ? [] : [command[at + 1]!];
        });
    expect(mtus('spine1')).toEqual(['9018']);
    expect(mtus('leaf1')).toEqual(['9000', '9000', '9018']);
    expect(mtus('mn1')).toEqual(['9000']);
  });

  it('turns every offload off that would hand a switch something else than frames', () => {
    const { nodes, links } = planMininet(topology, options);
    const off = nodes.flatMap(({ after }) => after.filter(([program]) => program === 'ethtool'));
    expect(off).toHaveLength(2 * links.length);
    for (const command of off) expect(command.slice(3).join(' ')).toBe('tx off rx off tso off gso off gro off');
  });

  it('gives every run a management network of its own', () => {
    expect(managementAddress(0, 1)).toBe('198.18.0.1');
    expect(managementAddress(3, 258)).toBe('198.18.13.2');
    expect(managementAddress(127, 1021)).toBe('198.19.255.253');
    const addresses = planMininet(topology, options).nodes.map(({ management }) => management.address);
    expect(addresses).toEqual(['198.18.12.2', '198.18.12.3', '198.18.12.4', '198.18.12.5']);
  });

  it('refuses more nodes than a management network has addresses, and runs without a number', () => {
    const { hosts } = topology;
    const many = { ...topology, hosts: Array.from({ length: 1020 }, (_, i) => ({ ...hosts[0]!, name: `h${i}` })) };
    expect(() => planMininet(many, options)).toThrow(expect.objectContaining({ code: 'INVALID_TOPOLOGY' }));
    for (const wrong of [
      { runId: 'xyz', networkIndex: 0 },
      { runId: '0a1b', networkIndex: 128 },
    ])
      expect(() => planMininet(topology, wrong)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  });
});
