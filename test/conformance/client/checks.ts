import type { SwitchConnection, SwitchConnectionOptions } from '../../../controller/p4runtime/connection.ts';
import type { FakeServer } from '../../controller/p4runtime/fake-server.ts';
import type { Checks } from '../rows.ts';
import { ARBITRATION_CHECKS } from './arbitration.ts';
import { STREAM_CHECKS } from './stream.ts';
import { WRITE_CHECKS } from './writes.ts';

/** What a client row's check works with: a server that does as it is told, and connections to it that are closed afterwards. */
export interface ClientContext {
  readonly server: FakeServer;
  /** A started connection to the server. */
  connect(options?: Partial<SwitchConnectionOptions>): SwitchConnection;
  /** The same, once it is primary. */
  connectPrimary(options?: Partial<SwitchConnectionOptions>): Promise<SwitchConnection>;
}

/** The lists of all files in this folder. */
export const CLIENT_CHECKS: readonly Checks<ClientContext>[] = [ARBITRATION_CHECKS, WRITE_CHECKS, STREAM_CHECKS];
