import { expect, test } from 'vitest';
import { type Status, StatusReporter } from '../../agents/status-reporter.ts';
import { VirtualScheduler } from '../../base/clock.ts';

function setUp() {
  const scheduler = new VirtualScheduler();
  const sent: string[] = [];
  const reporter = new StatusReporter(scheduler, ({ label, state, bytesDone }) =>
    sent.push(`${scheduler.nowUs() / 1000} ms: ${label} state ${state}, ${bytesDone} bytes`),
  );
  const transfer = {
    state: 3,
    bytes: 0n,
    status(): Status {
      return { label: 1, state: this.state, bytesDone: this.bytes };
    },
  };
  return { scheduler, sent, reporter, transfer };
}

test('progress is told five times a second, a new state at once', () => {
  const { scheduler, sent, reporter, transfer } = setUp();
  reporter.begin(1, transfer);
  for (let ms = 0; ms < 500; ms += 10) {
    scheduler.runUntil(ms * 1000);
    transfer.bytes += 1n;
    reporter.changed(1);
  }
  transfer.state = 4;
  reporter.changed(1);
  scheduler.runUntil(2_000_000);
  expect(sent).toEqual([
    '0 ms: 1 state 3, 0 bytes',
    '200 ms: 1 state 3, 20 bytes',
    '400 ms: 1 state 3, 40 bytes',
    '490 ms: 1 state 4, 50 bytes',
  ]);
});

test('the last word of an ended transfer is kept and said again, once per label', () => {
  const { scheduler, sent, reporter, transfer } = setUp();
  reporter.begin(1, transfer);
  transfer.state = 5;
  transfer.bytes = 9n;
  reporter.end(1);
  reporter.changed(1);
  reporter.end(1);
  transfer.bytes = 1000n;
  reporter.repeatAll();
  scheduler.runUntil(1_000_000);
  expect(sent.slice(1)).toEqual(['0 ms: 1 state 5, 9 bytes', '0 ms: 1 state 5, 9 bytes']);
});

test('after stop nothing is said', () => {
  const { scheduler, sent, reporter, transfer } = setUp();
  reporter.begin(1, transfer);
  reporter.changed(1);
  reporter.stop();
  scheduler.runUntil(1_000_000);
  expect(sent.length).toBe(1);
});
