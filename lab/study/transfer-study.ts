import { createRandom } from '../../base/random.ts';
import type { P4Program } from '../p4-program.ts';
import { Simulation } from '../simulation.ts';
import { type LeafSpineOptions, leafSpine } from './leaf-spine.ts';
import { LossRecord, type LossSummary } from './loss-record.ts';

export interface StudyOptions extends LeafSpineOptions {
  readonly seed: number;
  /** Of each direction of every host link, 0..1. */
  readonly loss: number;
  readonly payloadBytes: number;
  /** Default 1. */
  readonly maxStripes?: number;
}

/** One object from one source to all receivers of a leaf-spine fabric, in virtual time. */
export interface StudyResult extends LossSummary {
  readonly receivers: number;
  readonly stripes: number;
  readonly verified: number;
  /** From the first packet to the last verified receiver. */
  readonly seconds: number;
  /** Object over the rate of the source's link. */
  readonly idealSeconds: number;
  /** Bytes over links between switches over their bound: the object once over each link of the tree. */
  readonly linkBytesOverBound: number;
  /** Bytes out of the source over the object. */
  readonly sourceBytesOverObject: number;
  readonly nacksSent: number;
  readonly unicastBytes: number;
}

/** Bounds a run: this many times the ideal time, and a few seconds for tails. */
const LONGEST = 20;
const TAIL_SECONDS = 10;

/** Receivers that have not got it within the bound count as not verified. @throws what ended the sender or a receiver */
export function studyTransfer(program: P4Program, options: StudyOptions): StudyResult {
  const topology = leafSpine(options);
  const receivers = topology.hosts.filter(({ kind }) => kind === 'gpu-server').map(({ name }) => name);
  const record = new LossRecord(receivers);
  const simulation = new Simulation({
    topology,
    program,
    seed: options.seed,
    hostLinks: { loss: options.loss },
    observe: (host, upwards, frame, arrived) => record.observe(host, upwards, frame, arrived),
  });
  const payload = randomBytes(options.payloadBytes, options.seed);
  const transfer = simulation.startTransfer({
    source: 'mn1',
    receivers,
    label: 1,
    payload,
    maxStripes: options.maxStripes ?? 1,
  });
  const idealSeconds = (8 * payload.length) / options.hostBitsPerSecond;
  simulation.run(() => transfer.isComplete, Math.ceil(1e6 * (LONGEST * idealSeconds + TAIL_SECONDS)));
  const images = [...transfer.receivers.values()];
  const verified = images.filter(({ image }) => Buffer.compare(image, payload) === 0).length;
  const last = Math.max(...images.map(({ completeAtUs }) => completeAtUs ?? Number.POSITIVE_INFINITY));
  const { wires } = simulation.snapshot();
  const bound = (links: number): number => (payload.length / transfer.trees.length) * links;
  const sum = (kind: string, host?: string): number =>
    wires
      .filter((wire) => wire.class === kind && (host === undefined || wire.host === host))
      .reduce((bytes, wire) => bytes + wire.bytesIn, 0);
  return {
    ...record.summary(),
    receivers: receivers.length,
    stripes: transfer.trees.length,
    verified,
    seconds: last / 1e6,
    idealSeconds,
    linkBytesOverBound:
      sum('core') / transfer.trees.reduce((bytes, { coreLinks }) => bytes + bound(coreLinks.length), 0),
    sourceBytesOverObject: sum('host-up', 'mn1') / payload.length,
    nacksSent: images.reduce((total, { counters }) => total + counters.nacksSent, 0),
    unicastBytes: images.reduce((total, { counters }) => total + counters.unicastBytes, 0),
  };
}

function randomBytes(length: number, seed: number): Uint8Array {
  const random = createRandom(`payload/${seed}`);
  const words = new Uint32Array(Math.ceil(length / 4));
  for (let i = 0; i < words.length; i++) words[i] = random.uint32();
  return new Uint8Array(words.buffer, 0, length);
}
