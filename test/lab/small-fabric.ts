import { loadTopology } from '../../topologies/load.ts';
import type { Topology } from '../../topologies/types.ts';

/** Two spines, two leaves, a Memory Node on each leaf, and GPU servers spread over both. */
export function smallFabric(servers: number, hostRate = '1 Gb/s'): Topology {
  return loadTopology(
    `
name: small
mtu: 9000 B
switches:
  - { name: 'spine{1..2}', layer: spine }
  - { name: 'leaf{1..2}', layer: leaf }
hosts:
  - name: mn{1..2}
    kind: memory-node
    switch: leaf{1..2}
    link: { rate: ${hostRate}, delay: 10 us, queue: 256 frames }
  - name: gpu{1..${servers}}
    kind: gpu-server
    switch: leaf{1..2}
    link: { rate: ${hostRate}, delay: 10 us, queue: 256 frames }
links:
  - between: leaf{1..2}
    and: spine{1..2}
    link: { rate: 4 Gb/s, delay: 10 us, queue: 512 frames }
`,
    'small-fabric.yaml',
  );
}
