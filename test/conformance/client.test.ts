import { describe, it } from 'vitest';
import { SwitchConnection } from '../../controller/p4runtime/connection.ts';
import { FakeServer } from '../controller/p4runtime/fake-server.ts';
import { CLIENT_CHECKS, type ClientContext } from './client/checks.ts';
import { checksByRow, titleOf } from './rows.ts';

async function withContext(check: (context: ClientContext) => Promise<void>): Promise<void> {
  const server = await FakeServer.listen();
  const connections: SwitchConnection[] = [];
  const connect: ClientContext['connect'] = (options = {}) => {
    const connection = new SwitchConnection({
      name: 'leaf1',
      address: server.address,
      deviceId: 1,
      electionId: { high: 5n, low: 7n },
      reconnectFirstMs: 2,
      reconnectMaximumMs: 20,
      ...options,
    });
    connections.push(connection);
    connection.start();
    return connection;
  };
  try {
    await check({
      server,
      connect,
      connectPrimary: async (options) => {
        const connection = connect(options);
        await connection.whenPrimary(10_000);
        return connection;
      },
    });
  } finally {
    for (const connection of connections) connection.close();
    server.stop();
  }
}

describe('P4Runtime conformance of the controller', () => {
  for (const [row, check] of checksByRow('client', CLIENT_CHECKS)) it(titleOf(row), () => withContext(check));
});
