import type { Checks } from '../rows.ts';
import { ARBITRATION } from './arbitration.ts';
import { BATCHES } from './batches.ts';
import { ENTRIES } from './entries.ts';
import { PIPELINE } from './pipeline.ts';
import { PROFILES } from './profiles.ts';
import { REPLICATION } from './replication.ts';
import { RESOURCES } from './resources.ts';
import { STREAM } from './stream.ts';
import { TABLES } from './tables.ts';
import type { ServerContext } from './target.ts';

/** The lists of all files in this folder. */
export const SERVER_CHECKS: readonly Checks<ServerContext>[] = [
  ARBITRATION,
  PIPELINE,
  BATCHES,
  TABLES,
  ENTRIES,
  PROFILES,
  RESOURCES,
  REPLICATION,
  STREAM,
];
