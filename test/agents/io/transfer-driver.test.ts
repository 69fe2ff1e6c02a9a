import { expect, test } from 'vitest';
import { TransferDriver, type TransferMachine } from '../../../agents/io/transfer-driver.ts';
import { VirtualScheduler } from '../../../base/clock.ts';

/** A machine that has datagrams to send at given times and says `ticked` when it is woken. */
class Script implements TransferMachine<string> {
  readonly log: string[] = [];
  readonly events: string[] = [];
  due: number[];

  constructor(due: number[]) {
    this.due = due;
  }

  handlePacket(nowUs: number, datagram: Uint8Array): void {
    this.log.push(`packet ${datagram[0]} at ${nowUs}`);
    if (datagram[0] === 13) throw new Error('unlucky');
    this.events.push(`got ${datagram[0]}`);
  }

  handleTimeout(nowUs: number): void {
    this.log.push(`timeout at ${nowUs}`);
  }

  pollTransmit(nowUs: number): Uint8Array | undefined {
    const next = this.due[0];
    if (next === undefined || next > nowUs) return undefined;
    return Uint8Array.of(this.due.shift()!);
  }

  pollTimeout(): number | undefined {
    return this.due[0];
  }

  poll(): string | undefined {
    return this.events.shift();
  }
}

function drive(due: number[], options: { hasRoom?: () => boolean; leastWaitUs?: number } = {}) {
  const scheduler = new VirtualScheduler();
  const machine = new Script(due);
  const sent: string[] = [];
  const failures: string[] = [];
  const events: string[] = [];
  const driver: TransferDriver<string> = new TransferDriver({
    ...options,
    machine,
    scheduler,
    send: (datagram) => sent.push(`${datagram[0]} at ${scheduler.nowUs()}`),
    onEvent(event) {
      events.push(event);
      if (event === 'got 5') driver.handlePacket(Uint8Array.of(6));
    },
    onFailure: (error) => failures.push(`${error.code} ${error.message}`),
  });
  return { scheduler, machine, sent, failures, events, driver };
}

test('datagrams leave when they are due, the rest of the time the driver sleeps', () => {
  const { scheduler, machine, sent, driver } = drive([0, 0, 10, 200]);
  driver.pump();
  expect(sent).toEqual(['0 at 0', '0 at 0']);
  scheduler.runUntil(1000);
  expect(sent.slice(2)).toEqual(['10 at 10', '200 at 200']);
  expect(machine.log).toEqual(['timeout at 10', 'timeout at 200']);
});

test('a flood of datagrams is sent in turns, so that others get theirs', () => {
  const { scheduler, sent, driver } = drive(new Array(200).fill(0));
  driver.pump();
  expect(sent.length).toBe(64);
  scheduler.runUntil(0);
  expect(sent.length).toBe(200);
});

test('events reach the owner, also those that his answers cause', () => {
  const { events, driver } = drive([]);
  driver.handlePacket(Uint8Array.of(5));
  expect(events).toEqual(['got 5', 'got 6']);
});

test('a machine that throws fails its transfer once and is left alone', () => {
  const { scheduler, machine, failures, sent, driver } = drive([50]);
  driver.pump();
  driver.handlePacket(Uint8Array.of(13));
  driver.handlePacket(Uint8Array.of(1));
  scheduler.runUntil(100);
  expect(failures).toEqual(['INTERNAL unlucky']);
  expect(machine.log).toEqual(['packet 13 at 0']);
  expect(sent).toEqual([]);
});

test('a packet that makes something due earlier moves the alarm forward', () => {
  const { scheduler, machine, sent, driver } = drive([100]);
  driver.pump();
  scheduler.runUntil(20);
  machine.due = [30, 100];
  driver.handlePacket(Uint8Array.of(1));
  scheduler.runUntil(100);
  expect(sent).toEqual(['30 at 30', '100 at 100']);
});

test('what becomes due within the least wait leaves at once afterwards', () => {
  const { scheduler, sent, driver } = drive([0, 10, 20, 90, 240], { leastWaitUs: 80 });
  driver.pump();
  scheduler.runUntil(1000);
  expect(sent).toEqual(['0 at 0', '10 at 80', '20 at 80', '90 at 160', '240 at 240']);
});

test('without room nothing is taken from the machine until there is some', () => {
  let room = 2;
  const { scheduler, machine, sent, driver } = drive([0, 0, 0, 0], { hasRoom: () => room-- > 0 });
  driver.pump();
  expect(sent.length).toBe(2);
  scheduler.runUntil(1200);
  expect(sent.length).toBe(2);
  expect(machine.log.length).toBeLessThan(5);
  room = 10;
  scheduler.runUntil(2000);
  expect(sent.length).toBe(4);
});
