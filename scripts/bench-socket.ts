/**
 * What datagrams cost between the agents and the kernel: `npm run bench:socket [-- --json]`.
 *
 * A sender and a receiver, two processes, with the sockets, the pacing and the driver of the agents: as many datagrams as the sender can, and 1 Gb/s
 * of them. As root on Linux at the two ends of a veth cable between network namespaces that it makes, else over the loopback interface.
 */
import { cpus } from 'node:os';
import { loadLibc } from '../base/linux/libc.ts';
import { type Figures, measure, type Peers, SIZES, WAYS } from './bench-socket/measure.ts';
import { makePeers, whyNoVeth } from './bench-socket/namespaces.ts';

const ROUNDS = 3;
const RATES = [undefined, 1e9] as const;
const MTU_BYTES = 9000;

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

/** Medians over the rounds, each figure by itself. */
function middle(rounds: readonly Figures[]): Figures {
  const of = (pick: (figures: Figures) => number): number => median(rounds.map(pick));
  return {
    ...rounds[0]!,
    sentPerSecond: of((each) => each.sentPerSecond),
    receivedPerSecond: of((each) => each.receivedPerSecond),
    senderMicroseconds: of((each) => each.senderMicroseconds),
    receiverMicroseconds: of((each) => each.receiverMicroseconds),
    datagramsPerSend: of((each) => each.datagramsPerSend),
    datagramsPerReceive: of((each) => each.datagramsPerReceive),
    sendsFailed: of((each) => each.sendsFailed),
    sendsDeferred: of((each) => each.sendsDeferred),
  };
}

function show(figures: Figures): string {
  const count = (value: number): string => Math.round(value).toLocaleString('en-US').padStart(9);
  const cost = (value: number): string => value.toFixed(2).padStart(6);
  const load = figures.rateBitsPerSecond === null ? 'at will' : `${figures.rateBitsPerSecond / 1e9} Gb/s`;
  return (
    `${figures.way.padEnd(22)} ${figures.bytes} B ${load.padEnd(8)} sent ${count(figures.sentPerSecond)}/s at ${cost(figures.senderMicroseconds)} µs, ` +
    `received ${count(figures.receivedPerSecond)}/s at ${cost(figures.receiverMicroseconds)} µs` +
    ` (${figures.datagramsPerSend.toFixed(1)} a send, ${figures.datagramsPerReceive.toFixed(1)} a receive)`
  );
}

async function main(): Promise<void> {
  const reason = whyNoVeth();
  const made = reason === undefined ? await makePeers(MTU_BYTES) : undefined;
  const peers: Peers = made ?? {
    mtuBytes: MTU_BYTES,
    sender: { address: '127.0.0.1', enter: [] },
    receiver: { address: '127.0.0.1', enter: [] },
  };
  const canBatch = await loadLibc().then(
    () => true,
    (error: Error) => {
      console.log(`Not batched: ${error.message}.`);
      return false;
    },
  );
  console.log(
    `Over ${made === undefined ? `the loopback interface (${reason})` : 'a veth cable'}, MTU ${MTU_BYTES}; Node.js ${process.version}, ` +
      `${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}. Microseconds of processor time, kernel included, medians of ${ROUNDS} rounds:`,
  );
  const results: Figures[] = [];
  try {
    for (const bytes of SIZES)
      for (const rate of RATES) {
        const ways = WAYS.filter(({ sockets }) => canBatch || sockets === 'dgram');
        const rounds: Figures[][] = ways.map(() => []);
        // In turn, so that what else the machine does falls on all of them.
        for (let round = 0; round < ROUNDS; round++)
          for (const [i, way] of ways.entries()) rounds[i]!.push(await measure(peers, way, bytes, rate));
        for (const each of rounds) {
          const figures = middle(each);
          results.push(figures);
          console.log(show(figures));
        }
      }
  } finally {
    made?.remove();
  }
  if (process.argv.includes('--json'))
    console.log(JSON.stringify({ over: made === undefined ? 'loopback' : 'veth', results }));
}

await main();
