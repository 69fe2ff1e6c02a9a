import type { PayloadRecord, VersionRecord } from '../directory/types.ts';
import type { Estimate, Mechanism, Plan } from '../service.ts';
import type { FabricGraph } from '../topology/graph.ts';
import type { Tree } from '../topology/trees.ts';

/** What the planner asks the directory; `Directory` is one. */
export interface Catalogue {
  findObject(name: string): { readonly objectId: bigint; readonly name: string } | undefined;
  findVersion(objectId: bigint, version: number): VersionRecord | undefined;
  listVersions(objectId: bigint): readonly VersionRecord[];
  listPayloads(objectId: bigint, version: number): readonly PayloadRecord[];
  holds(agent: string, objectId: bigint, version: number): boolean;
  holders(objectId: bigint, version: number): readonly { readonly agent: string }[];
}

/** The fabric as it is when the plan is made. */
export interface FabricState {
  readonly graph: FabricGraph;
  attached(agent: string): boolean;
  /** Transfers that the agent sends now. */
  load(agent: string): number;
  /**
   * The tree from a source to receivers, away from links that carry something already.
   * @param planned trees of the same plan
   * @throws DdfError UNREACHABLE_HOST
   */
  planTree(source: string, receivers: readonly string[], planned: readonly Tree[]): Tree;
}

/** A plan with all that executing it takes; `view` is what people and REST see of it. */
export interface ExecutablePlan {
  readonly view: Plan;
  readonly objectId: bigint;
  readonly version: VersionRecord;
  /** In the order of `view.cohorts`. */
  readonly cohorts: readonly PlannedCohort[];
}

export interface PlannedCohort {
  readonly kind: 'current' | 'delta' | 'full';
  readonly servers: readonly string[];
  readonly mechanism: Mechanism;
  readonly payload: PayloadRecord | undefined;
  /** The parts that the payload is sent in, each over a tree of its own; none by unicast or where nothing is sent. */
  readonly trees: readonly Tree[];
  readonly predictedSeconds: Estimate | undefined;
}
