import { status } from '@grpc/grpc-js';
import { expect } from 'vitest';
import { UpdateType } from '../../../wire/p4runtime/messages.ts';
import { verdict } from '../../controller/p4runtime/fake-server.ts';
import type { Checks } from '../rows.ts';
import type { ClientContext } from './checks.ts';
import { pause, portRole, soon } from './fabric.ts';

const ALL_ONES = 2n ** 64n - 1n;
const OTHERS = { high: 9n, low: 3n };
const update = { type: UpdateType.INSERT, entity: portRole(1) };

/** Rows 14 to 17. */
export const ARBITRATION_CHECKS: Checks<ClientContext> = {
  14: async ({ server, connect }) => {
    server.onBid = () => verdict(status.ALREADY_EXISTS, OTHERS);
    const connection = connect();
    await soon(() => expect(connection.state).toBe('backup'));
    await pause(50);
    expect(server.bids).toHaveLength(1);
    server.onBid = (bid) => verdict(status.OK, bid.electionId);
    server.send({ arbitration: verdict(status.NOT_FOUND, OTHERS) });
    await connection.whenPrimary(10_000);
    expect(server.bids).toHaveLength(2);
    expect(server.bids[1]).toEqual({ high: 9n, low: 4n });
  },
  15: async ({ server, connect }) => {
    server.onBid = (_, stream) => {
      stream.emit('error', { code: status.INVALID_ARGUMENT, details: 'Election id already exists' });
      return undefined;
    };
    const connection = connect({ reconnectFirstMs: 20, reconnectMaximumMs: 80 });
    await pause(300);
    // 10 + 20 + 40 + 40 + ... milliseconds at the least.
    expect(server.bids.length).toBeLessThan(10);
    expect(new Set(server.bids.map(({ high, low }) => `${high}:${low}`)).size).toBe(server.bids.length);
    server.onBid = (bid) => verdict(status.OK, bid.electionId);
    await connection.whenPrimary(10_000);

    server.answerWrite = () => 'silence';
    server.onBid = () => undefined;
    const writes = [connection.write([update]), connection.write([update])];
    await soon(() => expect(server.writes).toHaveLength(2));
    server.hangUp(status.UNAVAILABLE, 'going down');
    for (const outcome of await Promise.all(writes)) expect(outcome.kind).toBe('unknown');
    await expect(connection.write([update])).rejects.toMatchObject({ code: 'SWITCH_UNREACHABLE', recoverable: true });
    expect(server.writes).toHaveLength(2);
  },
  16: async ({ server, connect }) => {
    const own = { high: 2n ** 63n + 5n, low: ALL_ONES };
    server.onBid = () => verdict(status.ALREADY_EXISTS, { high: 2n ** 63n + 5n, low: ALL_ONES });
    const connection = connect({ electionId: own });
    await soon(() => expect(connection.state).toBe('backup'));
    server.onBid = (bid) => verdict(status.OK, bid.electionId);
    // Lower, though a signed or a 64-bit comparison would say higher: the own id is good enough.
    server.send({ arbitration: verdict(status.NOT_FOUND, { high: 1n, low: ALL_ONES }) });
    await connection.whenPrimary(10_000);
    server.send({ arbitration: verdict(status.NOT_FOUND, own) });
    await soon(() => expect(server.bids).toHaveLength(3));
    expect(server.bids).toEqual([own, own, { high: 2n ** 63n + 6n, low: 0n }]);
  },
  17: async ({ server, connectPrimary }) => {
    const connection = await connectPrimary();
    const [old] = server.streams;
    server.onBid = () => undefined;
    server.hangUp(status.UNAVAILABLE, 'going down');
    await soon(() => expect(server.bids).toHaveLength(2));
    // An answer to the bid of a stream that is gone decides nothing.
    old!.write({ arbitration: verdict(status.OK, server.bids[0]) });
    await pause(20);
    expect(connection.state).not.toBe('primary');
    await expect(connection.write([update])).rejects.toMatchObject({ code: 'SWITCH_UNREACHABLE' });
    expect(server.writes).toHaveLength(0);
    server.send({ arbitration: verdict(status.OK, server.bids[1]) });
    await connection.whenPrimary(10_000);
  },
};
