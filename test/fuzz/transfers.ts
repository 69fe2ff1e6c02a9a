import type { Random } from '../../base/random.ts';
import { decodeFabric, encodeFabric } from '../../wire/fabric/header.ts';
import { Star } from '../agents/protocol/star.ts';
import { mutateBytes } from './mutate.ts';
import { ensure, type FuzzTarget, pick, Tally } from './target.ts';

const FIELDS = [
  'type',
  'flags',
  'label',
  'objectIdLow',
  'objectVersion',
  'baseVersion',
  'block',
  'symbol',
  'sourceSymbols',
  'need',
  'epoch',
] as const;

/** Damage that the checksum does not catch: a field is changed and the CRC made right again. */
function forge(random: Random, datagram: Uint8Array): Uint8Array {
  const packet = decodeFabric(datagram);
  if (typeof packet === 'string') return datagram;
  const name = pick(random, FIELDS);
  const value = random.chance(0.5) ? random.below(256) : (packet[name] ^ (1 << random.below(31))) >>> 0;
  const payload = random.chance(0.2)
    ? packet.payload.subarray(random.below(packet.payload.length + 1))
    : packet.payload;
  return encodeFabric(new Uint8Array(9000), { ...packet, [name]: value }, payload);
}

/** Where forged symbols carry the sender's own label, hashes have to find what the checksum could not: the transfer still ends. */
const GIVE_UP_US = 120_000_000;

/** Damaged and forged datagrams between a sender and its receivers, in virtual time: nobody throws, and every transfer arrives as it was. */
export function transfers(): FuzzTarget {
  const tally = new Tally();
  return {
    casesPerRound: 500,
    tally,
    round: (random, cases, step) => {
      let left = cases;
      while (left > 0) {
        const isForger = random.chance(0.5);
        const star = new Star({
          seed: `fuzz ${random.uint32()}`,
          receivers: 2,
          payloadBytes: 20_000 + random.below(60_000),
          segmentBytes: 300,
          down: { loss: 0.02, duplication: 0.02, jitterUs: 200 },
          up: { loss: 0.02, duplication: 0.02, jitterUs: 200 },
          behaviour: { mayWriteWrong: isForger },
          ...(isForger ? { receiver: { idleTimeoutUs: 500_000 }, sender: { expectDone: false } } : {}),
        });
        let injected = 0;
        const inject = (receive: (datagram: Uint8Array) => void) => (datagram: Uint8Array) => {
          if (left > 0 && injected < 150 && random.chance(0.2)) {
            const bytes = isForger ? forge(random, datagram) : mutateBytes(random, datagram);
            step(() => `${isForger ? 'forged' : 'damaged'} datagram ${Buffer.from(bytes).toString('hex')}`);
            left--;
            injected++;
            receive(bytes.slice());
          }
          receive(datagram);
        };
        star.sender.receive = inject(star.sender.receive.bind(star.sender));
        for (const receiver of star.receivers) receiver.receive = inject(receiver.receive.bind(receiver));
        ensure(star.runToEnd(GIVE_UP_US), () => 'a transfer never ended');
        for (const receiver of star.receivers) receiver.expectComplete();
        tally.add('transfers');
        // A transfer too short for any damage is no case, but it must not keep the round going for ever.
        if (injected === 0) left--;
      }
    },
  };
}
