/**
 * What the state machines of sender and receiver cost: `npm run bench:protocol [-- --json]`.
 *
 * A sender and a receiver back to back in one thread, without a network: processor time per packet and payload bytes per second of each, for segments
 * of 8,192 and 1,376 bytes, with and without loss, into memory and into a file. Hashing is not part of it: worker threads do that. What arrived is
 * compared with what was sent.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { WHOLE_STREAM } from '../agents/protocol/layout.ts';
import { TransferReceiver } from '../agents/protocol/receiver.ts';
import { TransferSender } from '../agents/protocol/sender.ts';
import type { PayloadSink } from '../agents/protocol/stream-assembly.ts';
import { ReceivingPayload } from '../agents/store/receiving.ts';
import { createRandom } from '../base/random.ts';
import { CHUNK_BYTES } from '../objects/chunks.ts';
import { makeObjectId } from '../objects/ids.ts';

const PAYLOAD_BYTES = 128 << 20;
/** Packets that change hands at a time: more than the caches near the core hold. */
const BATCH = 1024;
const RUNS = 5;
const RTT_US = 400;
const TRANSFER = { label: 7, objectId: makeObjectId(1, 1n), objectVersion: 1, baseVersion: 0 };

interface Case {
  readonly segmentBytes: number;
  readonly lossPercent: number;
  readonly sink: 'memory' | 'file';
}

interface Figures extends Case {
  /** Medians over the runs: microseconds of processor time per DATA or REPAIR packet, kernel included. */
  readonly senderMicroseconds: number;
  readonly receiverMicroseconds: number;
  readonly senderBytesPerSecond: number;
  readonly receiverBytesPerSecond: number;
}

const CASES: readonly Case[] = [8192, 1376].flatMap((segmentBytes) =>
  ([0, 1] as const).flatMap((lossPercent) =>
    (['memory', 'file'] as const).map((sink) => ({ segmentBytes, lossPercent, sink })),
  ),
);

const payload = new Uint8Array(PAYLOAD_BYTES);
const words = new Uint32Array(payload.buffer);
const content = createRandom('bench-protocol');
for (let i = 0; i < words.length; i++) words[i] = content.uint32();

interface Place {
  readonly sink: PayloadSink;
  /** Everything has been written. */
  finish(): void;
  read(): Uint8Array;
}

const memory = new Uint8Array(PAYLOAD_BYTES);

function placeInMemory(): Place {
  return {
    sink: {
      write: (offset, bytes) => memory.set(bytes, offset),
      read: (offset, length) => memory.subarray(offset, offset + length),
    },
    finish: () => {},
    read: () => memory,
  };
}

function placeInFile(directory: string): Place {
  const receiving = new ReceivingPayload(join(directory, 'receiving'), {
    objectId: TRANSFER.objectId,
    version: 1,
    baseVersion: 0,
    sizeBytes: PAYLOAD_BYTES,
    manifestSha256: new Uint8Array(32),
  });
  return {
    sink: receiving,
    finish: () => {
      receiving.flush();
      receiving.close();
    },
    read: () => readFileSync(receiving.dataPath),
  };
}

/** Processor time of this process since its start, in microseconds. */
function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** @returns processor time of sender and receiver per packet, in microseconds */
function run({ segmentBytes, lossPercent }: Case, place: Place, seed: number): [sender: number, receiver: number] {
  const random = createRandom(`bench-protocol/${seed}`);
  const layout = { manifestBytes: 0, payloadBytes: PAYLOAD_BYTES, segmentBytes };
  const sender = new TransferSender(0, {
    ...layout,
    transfer: TRANSFER,
    reader: { read: (offset, length) => payload.subarray(offset, offset + length) },
    // The pacer never waits: a packet a nanosecond.
    rateFloorBitsPerSecond: 1e14,
    rateCeilingBitsPerSecond: 1e14,
    rttUs: RTT_US,
    expectDone: true,
  });
  const receiver = new TransferReceiver(0, {
    ...layout,
    transfer: TRANSFER,
    stripes: [{ label: TRANSFER.label, stripe: WHOLE_STREAM, sender: 'sender', rttUs: RTT_US, sendDone: true }],
    sink: place.sink,
    random: random.fork('receiver'),
    eliminationUs: 1000,
  });
  const room = Array.from({ length: BATCH }, () => Buffer.alloc(segmentBytes + 40));
  const down: Uint8Array[] = [];
  let [senderUs, receiverUs, packets, nowUs] = [0, 0, 0, 0];
  while (!receiver.isComplete) {
    // As fast as 10 Gb/s would carry it.
    nowUs += Math.max(50, Math.ceil((down.length * segmentBytes) / 1250));
    down.length = 0;
    const startUs = cpuUs();
    while (down.length < BATCH) {
      const datagram = sender.pollTransmit(nowUs);
      if (datagram === undefined) break;
      const copy = room[down.length]!.subarray(0, datagram.length);
      copy.set(datagram);
      down.push(copy);
    }
    const sentUs = cpuUs();
    for (const datagram of down) if (!random.chance(lossPercent / 100)) receiver.handlePacket(nowUs, datagram);
    const up: Uint8Array[] = [];
    for (let event = receiver.poll(); event !== undefined; event = receiver.poll()) {
      if (event.type === 'chunkComplete') receiver.chunkVerified(event.chunk, true);
      if (event.type === 'unicastNeeded')
        for (const { start, end } of event.ranges) receiver.unicastData(start, payload.subarray(start, end));
    }
    for (let out = receiver.pollTransmit(nowUs); out !== undefined; out = receiver.pollTransmit(nowUs))
      up.push(out.slice());
    if (receiver.isComplete) place.finish();
    const receivedUs = cpuUs();
    for (const datagram of up) sender.handlePacket(nowUs, datagram);
    senderUs += cpuUs() - receivedUs + sentUs - startUs;
    receiverUs += receivedUs - sentUs;
    packets += down.length;
  }
  if (Buffer.compare(place.read(), payload) !== 0) throw new Error('what arrived differs from what was sent');
  return [senderUs / packets, receiverUs / packets];
}

function measure(measured: Case): Figures {
  const times: [number, number][] = [];
  // The first run warms up.
  for (let i = 0; i <= RUNS; i++) {
    const directory = mkdtempSync(join(tmpdir(), 'ddf-bench-protocol-'));
    try {
      const place = measured.sink === 'memory' ? placeInMemory() : placeInFile(directory);
      const time = run(measured, place, i);
      if (i > 0) times.push(time);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }
  const median = (side: 0 | 1): number => times.map((time) => time[side]).sort((a, b) => a - b)[RUNS >> 1]!;
  const perSecond = (us: number): number => Math.round((measured.segmentBytes * 1e6) / us);
  const [senderMicroseconds, receiverMicroseconds] = [median(0), median(1)];
  return {
    ...measured,
    senderMicroseconds,
    receiverMicroseconds,
    senderBytesPerSecond: perSecond(senderMicroseconds),
    receiverBytesPerSecond: perSecond(receiverMicroseconds),
  };
}

console.log(
  `${PAYLOAD_BYTES >> 20} MiB in ${PAYLOAD_BYTES / CHUNK_BYTES} chunks, processor time per packet, medians of ${RUNS} runs; Node.js ${process.version}, ${cpus()[0]?.model ?? 'unknown processor'}.`,
);
const cell = (us: number, bytesPerSecond: number): string =>
  `${us.toFixed(2).padStart(7)} µs ${(bytesPerSecond / 1e9).toFixed(2).padStart(6)} GB/s`;
const results = CASES.map((measured) => {
  const figures = measure(measured);
  const { segmentBytes, lossPercent, sink } = figures;
  console.log(
    `  ${String(segmentBytes).padStart(5)} B, ${lossPercent} % loss, into ${sink.padEnd(6)}  sender ${cell(figures.senderMicroseconds, figures.senderBytesPerSecond)}   receiver ${cell(figures.receiverMicroseconds, figures.receiverBytesPerSecond)}`,
  );
  return figures;
});
if (process.argv.includes('--json')) console.log(JSON.stringify({ results }));
