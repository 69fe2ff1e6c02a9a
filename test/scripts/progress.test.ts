import { expect, test } from 'vitest';
import type { RolloutEvent, RolloutView } from '../../controller/service.ts';
import { progressLine, SparseProgress } from '../../scripts/progress.ts';
import { createTerminal } from '../../scripts/terminal.ts';

const server = (
  cohort: 'current' | 'delta' | 'full',
  bytesDone: number,
  bytesTotal: number,
  state: RolloutView['servers'][number]['state'] = 'receiving',
) => ({ name: 'gpu', cohort, state, bytesDone, bytesTotal, error: null });

const view = (servers: RolloutView['servers'], verified: number): RolloutView => ({
  id: 'r1',
  object: 'o',
  version: 2,
  state: 'distributing',
  plan: {
    object: 'o',
    objectId: '',
    version: 2,
    targets: servers.length,
    cohorts: [],
    bytes: { source: 0, coreLinks: 0, hostLinks: 0, unicastSource: 0, unicastCoreLinks: 0 },
    warnings: [],
  },
  servers,
  transfers: [],
  verified,
  phases: [],
  startedAt: '',
  endedAt: null,
  error: null,
});

test('the progress line counts only what has to be received', () => {
  const servers = [server('current', 0, 0, 'verified'), server('delta', 500_000, 1_000_000), server('full', 0, 1e6)];
  expect(progressLine(view(servers, 1))).toBe(
    '[######..................]  1/3 verified  distributing  500.0 kB of 2.00 MB received',
  );
  expect(progressLine(view([server('full', 2e6, 1e6, 'failed')], 0))).toMatch(/^\[#{24}\] .*1 failed$/);
  expect(progressLine(view([server('current', 0, 0, 'verified')], 1))).toMatch(/^\[#{24}\]/);
});

test('in a pipe, single servers are told of at the start and at every quarter', () => {
  const sparse = new SparseProgress();
  const event = (type: RolloutEvent['type'], verified: number): RolloutEvent => ({
    id: 1,
    at: '',
    type,
    message: `${type} ${verified}`,
    state: 'distributing',
    verified,
    total: 64,
  });
  const lines = Array.from({ length: 64 }, (_, i) => sparse.line(event('server', i + 1))).filter((line) => line);
  expect(lines).toHaveLength(5);
  expect(lines.at(-1)).toBe('64/64 verified  server 64');
  expect(sparse.line(event('state', 64))).toBe('64/64 verified  state 64');
});

test('on a terminal one line is drawn over, cut to its width, and left alone by what follows', () => {
  const written: string[] = [];
  const stream = (isTTY: boolean) => ({ write: (text: string) => written.push(text), isTTY, columns: 10 });
  const terminal = createTerminal(stream(false), stream(true));
  terminal.redraw?.('0123456789ABC');
  terminal.redraw?.('second');
  terminal.out('result');
  terminal.out('more');
  terminal.finishLine();
  expect(written).toEqual(['\r\u001b[2K012345678', '\r\u001b[2Ksecond', '\n', 'result\n', 'more\n']);
  expect(createTerminal(stream(true), stream(false)).redraw).toBeUndefined();
});
