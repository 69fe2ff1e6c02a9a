import { Directory } from '../../../controller/directory/directory.ts';
import type { FabricState } from '../../../controller/planner/types.ts';
import { openStore } from '../../../controller/store/store.ts';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { linkKey, planTree } from '../../../controller/topology/trees.ts';
import { CHUNK_BYTES } from '../../../objects/chunks.ts';
import { loadTopology } from '../../../topologies/load.ts';
import type { Topology } from '../../../topologies/types.ts';

/** Two spines, four leaves, a Memory Node and 16 GPU servers to a leaf: the fabric of `npm start`. */
export function leafSpine(): Topology {
  return loadTopology(
    `name: leaf-spine
mtu: 9000 B
switches:
  - { name: "spine{1..2}", layer: spine }
  - { name: "leaf{1..4}", layer: leaf }
hosts:
  - name: mn{1..4}
    kind: memory-node
    switch: leaf{1..4}
    link: { rate: 1 Gb/s, delay: 10 us, queue: 256 frames }
  - name: gpu{01..64}
    kind: gpu-server
    switch: leaf{1..4}
    link: { rate: 1 Gb/s, delay: 10 us, queue: 256 frames }
links:
  - between: leaf{1..4}
    and: spine{1..2}
    link: { rate: 4 Gb/s, delay: 10 us, queue: 512 frames }
`,
    'leaf-spine.yaml',
  );
}

export const FULL_BYTES = 40_000_000;
export const DELTA_BYTES = 600_000;

export const root = (version: number): Uint8Array => new Uint8Array(32).fill(version);

/** A directory over an in-memory database, and a fabric where everybody is attached unless told otherwise. */
export class World {
  readonly topology = leafSpine();
  readonly graph = new FabricGraph(this.topology);
  readonly directory = new Directory(openStore(':memory:'), () => '2030-01-01T00:00:00.000Z');
  readonly servers = this.topology.hosts.filter((h) => h.kind === 'gpu-server').map((h) => h.name);
  readonly detached = new Set<string>();
  readonly loads = new Map<string, number>();
  readonly fabric: FabricState = {
    graph: this.graph,
    attached: (agent) => !this.detached.has(agent),
    load: (agent) => this.loads.get(agent) ?? 0,
    planTree: (source, receivers, planned) =>
      planTree(
        this.graph,
        source,
        receivers,
        new Map(planned.flatMap((tree) => tree.coreLinks.map((hop) => [linkKey(hop), 1]))),
      ),
  };
  private readonly incarnations = new Map<string, bigint>();

  publish(object: string, version: number, memoryNode = 'mn1', sizeBytes = FULL_BYTES): bigint {
    const { objectId } = this.directory.ensureObject(object);
    this.directory.recordVersion({ objectId, version, sizeBytes, root: root(version) }, CHUNK_BYTES);
    this.hold(memoryNode, object, version);
    this.payload(object, version, 0, sizeBytes, memoryNode);
    return objectId;
  }

  payload(object: string, version: number, base: number, sizeBytes: number, memoryNode = 'mn1'): void {
    const { objectId } = this.directory.findObject(object)!;
    this.directory.recordPayload(
      { objectId, version, base, sizeBytes, manifestBytes: 1000, manifestSha256: root(base) },
      memoryNode,
    );
  }

  hold(agent: string, object: string, version: number): void {
    const { objectId } = this.directory.findObject(object)!;
    const record = this.directory.findVersion(objectId, version)!;
    if (!this.incarnations.has(agent)) {
      this.incarnations.set(agent, 1n);
      const kind = agent.startsWith('mn') ? 'memory-node' : 'gpu-server';
      this.directory.attach({ name: agent, kind, incarnation: 1n }, [], []);
    }
    this.directory.recordHeld(agent, { objectId, version, sizeBytes: record.sizeBytes, root: record.root });
  }

  /** The example of the product: 40 at 22, 16 at 21, 8 with nothing. */
  static example(): World {
    const world = new World();
    world.publish('models/demo', 21);
    world.publish('models/demo', 22);
    world.payload('models/demo', 22, 21, DELTA_BYTES);
    world.servers.forEach((server, i) => {
      if (i % 8 < 5) world.hold(server, 'models/demo', 22);
      else if (i % 8 < 7) world.hold(server, 'models/demo', 21);
    });
    return world;
  }
}
