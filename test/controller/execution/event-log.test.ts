import { expect, it } from 'vitest';
import { EventLog } from '../../../controller/execution/event-log.ts';
import type { RolloutEvent } from '../../../controller/service.ts';

const event = (id: number): RolloutEvent => ({
  id,
  at: '2030-01-01T00:00:00.000Z',
  type: 'note',
  message: `event ${id}`,
  state: 'distributing',
  verified: 0,
  total: 1,
});

async function read(log: EventLog, afterId: number, signal = new AbortController().signal): Promise<number[]> {
  const ids: number[] = [];
  for await (const { id } of log.after(afterId, signal)) ids.push(id);
  return ids;
}

it('gives what was after an id, then what comes, to every reader, until the end', async () => {
  const log = new EventLog([event(1), event(2)], false);
  const readers = [read(log, 0), read(log, 1), read(log, 2), read(log, 9)];
  expect(log.nextId).toBe(3);
  log.append(event(3));
  await Promise.resolve();
  log.append(event(4));
  log.end();
  expect(await Promise.all(readers)).toEqual([[1, 2, 3, 4], [2, 3, 4], [3, 4], []]);
  expect(await read(log, 3)).toEqual([4]);
});

it('ends for a reader who leaves, and for no other', async () => {
  const log = new EventLog([event(1)], false);
  const gone = new AbortController();
  const leaving = read(log, 0, gone.signal);
  const staying = read(log, 0);
  gone.abort();
  expect(await leaving).toEqual([1]);
  log.append(event(2));
  log.end();
  expect(await staying).toEqual([1, 2]);
});
