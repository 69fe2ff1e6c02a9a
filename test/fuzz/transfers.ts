import { noRejections, type RejectionCounters } from '../../agents/protocol/rejections.ts';
import type { Random } from '../../base/random.ts';
import { decodeFabric } from '../../wire/fabric/header.ts';
import type { ReceiverHost, SenderHost } from '../agents/protocol/harness.ts';
import { Star } from '../agents/protocol/star.ts';
import { type Attack, LYING, RECEIVER_SIDE, SENDER_SIDE, type Side, TRUTHFUL } from './hostile-packets.ts';
import { ensure, type FuzzTarget, pick, Tally } from './target.ts';

/** Where packets carry the sender's own label, hashes may have to find what checksums could not: the transfer still ends. */
const GIVE_UP_US = 120_000_000;
/** Per transfer: then it is left alone, so that it ends. */
const MAX_ATTACKS = 1000;
const MAX_ATTACKS_AT_ONCE = 12;
const MAX_SEEN = 64;
const REASONS = Object.keys(noRejections()).filter((name) => name !== 'packetsRejected') as (keyof RejectionCounters)[];

/** What a machine says about the packets that it was handed: each of them stands in exactly one of these. */
function accountedBySender({ counters }: SenderHost['machine']): number {
  const { nacksReceived, reportsReceived, doneReceived, donesIgnored, packetsRejected } = counters;
  return nacksReceived + reportsReceived + Number(doneReceived) + donesIgnored + packetsRejected;
}

function accountedByReceiver({ counters }: ReceiverHost['machine']): number {
  const { dataPackets, repairPackets, syncPackets, packetsLate, packetsRejected } = counters;
  return dataPackets + repairPackets + syncPackets + packetsLate + packetsRejected;
}

/** One machine under attack: hands it packets and holds it to account for each. */
class Target {
  readonly side: Side;
  readonly deliver: (datagram: Uint8Array) => void;
  private readonly counters: () => RejectionCounters;
  private readonly accounted: () => number;
  private handled = 0;

  constructor(side: Side, host: SenderHost | ReceiverHost, counters: () => RejectionCounters, accounted: () => number) {
    this.side = side;
    this.deliver = host.receive.bind(host);
    this.counters = counters;
    this.accounted = accounted;
  }

  take(datagram: Uint8Array, counter?: keyof RejectionCounters): void {
    const before = counter === undefined ? 0 : this.counters()[counter];
    // The machine may keep no view on what it was handed.
    const copy = datagram.slice();
    this.deliver(copy);
    copy.fill(0xee);
    this.handled++;
    ensure(
      this.accounted() === this.handled,
      () => `${this.handled} packets came in, ${this.accounted()} are accounted for`,
    );
    const after = this.counters();
    ensure(counter === undefined || after[counter] === before + 1, () => `${counter} does not show it`);
    const reasons = REASONS.reduce((sum, name) => sum + after[name], 0);
    ensure(reasons === after.packetsRejected, () => `${after.packetsRejected} rejected, for ${reasons} reasons`);
  }
}

/**
 * Packets that should not be there between a sender and its receivers, in virtual time: nobody throws, every packet is accounted for, every transfer
 * ends, and what arrives is what was sent. Without forged contents no wrong byte is ever written; with them none stays.
 */
export function transfers(): FuzzTarget {
  const tally = new Tally();
  return {
    casesPerRound: 5000,
    tally,
    round: (random, cases, step) => {
      let left = cases;
      let foreign: Uint8Array[] = [];
      while (left > 0) {
        const isForger = random.chance(0.3);
        const attacks = Object.entries(isForger ? { ...TRUTHFUL, ...LYING } : TRUTHFUL);
        const star = makeStar(random, isForger);
        const { layout } = star.sender.machine;
        const seen: Uint8Array[] = [];
        let injected = 0;
        const attack = (target: Target, datagram: Uint8Array, packet: Attack['packet']): void => {
          const [name, make] = pick(random, attacks);
          const side = target.side;
          const stream = star.content.stream;
          const hostile = make({ random, side, packet, datagram, seen, foreign, layout, stream });
          if (hostile === undefined) return;
          step(() => `${name}: ${Buffer.from(hostile.datagram).toString('hex')}`);
          left--;
          injected++;
          target.take(hostile.datagram, hostile.counter);
          tally.add(name);
        };
        const between = (target: Target) => (datagram: Uint8Array) => {
          const packet = decodeFabric(datagram);
          ensure(typeof packet !== 'string', () => `a sound packet does not pass: ${packet}`);
          remember(random, seen, datagram);
          if (random.chance(0.3))
            for (let i = 1 + random.below(MAX_ATTACKS_AT_ONCE); i > 0 && left > 0 && injected < MAX_ATTACKS; i--)
              attack(target, datagram, packet);
          target.take(datagram);
        };
        const { sender } = star;
        sender.receive = between(
          new Target(
            SENDER_SIDE,
            sender,
            () => sender.machine.counters,
            () => accountedBySender(sender.machine),
          ),
        );
        for (const receiver of star.receivers)
          receiver.receive = between(
            new Target(
              RECEIVER_SIDE,
              receiver,
              () => receiver.machine.counters,
              () => accountedByReceiver(receiver.machine),
            ),
          );
        ensure(star.runToEnd(GIVE_UP_US), () => 'a transfer never ended');
        for (const receiver of star.receivers) receiver.expectComplete();
        tally.add('transfers');
        foreign = seen;
        // A transfer too short for any attack is no case, but it must not keep the round going for ever.
        if (injected === 0) left--;
      }
    },
  };
}

function makeStar(random: Random, isForger: boolean): Star {
  return new Star({
    seed: `fuzz ${random.uint32()}`,
    receivers: 1 + random.below(3),
    payloadBytes: 20_000 + random.below(60_000),
    segmentBytes: 300,
    down: { loss: 0.02, duplication: 0.02, jitterUs: 200 },
    up: { loss: 0.02, duplication: 0.02, jitterUs: 200 },
    behaviour: { mayWriteWrong: isForger },
    receiver: { idleTimeoutUs: 500_000 },
    // A forged DONE ends the transfer where one is believed; receivers then read the rest by unicast.
    sender: { expectDone: random.chance(0.3) },
  });
}

function remember(random: Random, seen: Uint8Array[], datagram: Uint8Array): void {
  if (seen.length < MAX_SEEN) seen.push(datagram.slice());
  else seen[random.below(MAX_SEEN)] = datagram.slice();
}
