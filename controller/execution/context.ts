import type { Scheduler } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { AgentServer } from '../agents/agent-server.ts';
import type { Directory } from '../directory/directory.ts';
import type { SwitchFleet } from '../fabric/switch-fleet.ts';
import type { Counters } from '../store/counters.ts';
import type { RolloutStore } from '../store/rollout-store.ts';
import type { EntityFactory } from '../tables/entities.ts';
import type { TransferSlots } from '../tables/slots.ts';
import type { FabricGraph } from '../topology/graph.ts';
import type { LossBook } from './loss-watch.ts';
import type { RangeTokens } from './range-tokens.ts';
import type { RateBook } from './rate-book.ts';

/** What executing rollouts takes: the parts of one controller. */
export interface ExecutionContext {
  readonly scheduler: Scheduler;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
  readonly logger: Logger;
  readonly graph: FabricGraph;
  readonly directory: Directory;
  readonly agents: Pick<AgentServer, 'find' | 'request'>;
  readonly fleet: Pick<SwitchFleet, 'install' | 'remove'>;
  readonly factory: EntityFactory;
  readonly slots: TransferSlots;
  readonly labels: Counters;
  readonly rollouts: RolloutStore;
  readonly tokens: RangeTokens;
  readonly rates: RateBook;
  readonly losses: LossBook;
  /** Bytes of a payload in one packet. */
  readonly segmentBytes: number;
  /** The switches' elimination interval. */
  readonly eliminationUs: number;
}
