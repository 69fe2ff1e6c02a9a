import { DdfError } from '../base/errors.ts';
import { formatPayloadId } from '../objects/ids.ts';
import { chunkSha256At, MAX_PAYLOAD_BYTES } from '../objects/manifest.ts';
import { RECEIVER_UDP_PORT_FIRST } from '../p4/build/constants.ts';
import {
  AgentKind,
  type EndTransfer,
  type PrepareReceive,
  type Request,
  TransferState,
  type UpdateReceive,
} from '../wire/agent/messages.ts';
import {
  type Agent,
  AgentCore,
  type AgentOptions,
  payloadIdOf,
  type ReplyBody,
  required,
  unknownRequest,
} from './agent.ts';
import { Incoming, transferOwner } from './incoming.ts';
import { MAX_SEGMENT_BYTES } from './protocol/layout.ts';
import type { ReceivingPayload } from './store/receiving.ts';
import type { StoredPayload } from './store/store.ts';

export interface GpuServerOptions extends AgentOptions {
  /** UDP port of its receiver, within the reserved range. Default: the range's first. */
  readonly receiverPort?: number;
}

const KEPT_OVER = 256;

/** The GPU server: receives, repairs, verifies, applies deltas, activates. */
export function createGpuServer(options: GpuServerOptions): Agent {
  const core: AgentCore = new AgentCore(options, (owner) => {
    const server = new GpuServer(owner);
    return {
      kind: AgentKind.GPU_SERVER,
      fabricPort: options.receiverPort ?? RECEIVER_UDP_PORT_FIRST,
      transfer: (label) => server.receiving(label),
      execute: (request) => server.execute(request),
      close: () => server.close(),
    };
  });
  return core.face();
}

class GpuServer {
  private readonly core: AgentCore;
  private readonly transfers = new Map<number, Incoming>();
  /** What a stripe's label belongs to. */
  private readonly receiveLabels = new Map<number, number>();
  private readonly preparing = new Map<number, { readonly done: Promise<ReplyBody>; isAborted: boolean }>();

  constructor(core: AgentCore) {
    this.core = core;
  }

  receiving(label: number): Incoming | undefined {
    return this.transfers.get(this.receiveLabels.get(label) ?? label);
  }

  async execute(request: Request): Promise<ReplyBody> {
    const { prepareReceive, updateReceive, endTransfer, activateVersion } = request;
    if (prepareReceive !== undefined) return this.prepareOnce(prepareReceive);
    if (updateReceive !== undefined) return this.updateReceive(updateReceive);
    if (endTransfer !== undefined) return this.endTransfer(endTransfer);
    if (activateVersion !== undefined) {
      this.core.store.activate(activateVersion.objectId, activateVersion.version);
      return {};
    }
    throw unknownRequest('GPU server');
  }

  close(): void {
    for (const incoming of this.transfers.values()) incoming.close();
    for (const label of this.preparing.keys()) this.cancelJobs(label);
  }

  private prepareOnce(request: PrepareReceive): Promise<ReplyBody> {
    const { label } = request;
    const running = this.preparing.get(label);
    if (running !== undefined) return running.done;
    const done = this.prepare(request).finally(() => this.preparing.delete(label));
    this.preparing.set(label, { done, isAborted: false });
    return done;
  }

  private async prepare(request: PrepareReceive): Promise<ReplyBody> {
    const { label } = request;
    const payload = required(request.payload, 'payload');
    const id = payloadIdOf(payload);
    this.checkSizes(request);
    const known = this.transfers.get(label);
    if (known !== undefined && formatPayloadId(payloadIdOf(known.request.payload!)) !== formatPayloadId(id))
      throw new DdfError('CONFLICT', `label ${label} belongs to another payload`, { where: 'label' });
    if (known !== undefined && known.state !== TransferState.FAILED) return {};

    await this.supersede(request);
    const held = this.core.store.findVersion(id.objectId, id.version);
    if (held !== undefined) return this.alreadyHeld(request, held);
    const base = id.baseVersion === 0 ? undefined : await this.proveBase(request);
    // The target of a delta is about as large as its base.
    this.core.store.requireSpace(Number(payload.sizeBytes) + (base?.manifest.sizeBytes ?? 0));
    this.requireWanted(label);
    const { manifestSha256 } = payload;
    const receiving = this.core.store.receive({ ...id, sizeBytes: Number(payload.sizeBytes), manifestSha256 });
    const unpin = base === undefined ? () => {} : this.core.store.pin(base.manifest);
    try {
      await this.proveClaimed(label, receiving);
      this.requireWanted(label);
      this.forget(label);
      const incoming = new Incoming({ core: this.core, request, receiving, base, onSettled: unpin });
      this.transfers.set(label, incoming);
      this.noteLabels(label, incoming);
    } catch (error) {
      unpin();
      if (this.core.isRunning) this.core.store.suspendReceived(receiving);
      throw error;
    }
    this.forgetOver();
    return {};
  }

  private checkSizes(request: PrepareReceive): void {
    const { payload, segmentBytes } = request;
    const sizeBytes = payload!.sizeBytes;
    if (sizeBytes < 1n || sizeBytes > BigInt(MAX_PAYLOAD_BYTES))
      throw new DdfError('INVALID_REQUEST', `a payload of ${sizeBytes} bytes`, { where: 'payload.size_bytes' });
    if (payload!.manifestBytes === 0 || payload!.manifestSha256.length !== 32)
      throw new DdfError('INVALID_REQUEST', 'the payload has no manifest', { where: 'payload.manifest_sha256' });
    // Whether they pass, this server's own link included, the sender's probes find out.
    if (segmentBytes < 1 || segmentBytes > MAX_SEGMENT_BYTES)
      throw new DdfError('INVALID_REQUEST', `segments of ${segmentBytes} bytes, not of 1..${MAX_SEGMENT_BYTES}`, {
        where: 'segment_bytes',
      });
    this.checkStripes(request);
  }

  /** That they are of one payload, the state machine checks. */
  private checkStripes({ label, stripes }: PrepareReceive | UpdateReceive): void {
    if (stripes.some(({ rttUs }) => rttUs === 0))
      throw new DdfError('INVALID_REQUEST', 'the round-trip time is 0', { where: 'stripes.rtt_us' });
    for (const stripe of stripes) {
      const owner = this.receiveLabels.get(stripe.label) ?? label;
      if (owner !== label)
        throw new DdfError('CONFLICT', `label ${stripe.label} belongs to what is received as ${owner}`, {
          where: 'stripes.label',
        });
    }
  }

  /** A new transfer of the same version takes over what an older one has verified; one that is nearly done may finish. */
  private async supersede(request: PrepareReceive): Promise<void> {
    const { objectId, version } = request.payload!;
    for (const incoming of this.transfers.values()) {
      const { payload, label } = incoming.request;
      if (incoming.isOver || payload!.objectId !== objectId || payload!.version !== version) continue;
      if (incoming.outcome !== undefined) await incoming.outcome;
      else incoming.abort(`label ${request.label} has taken over from label ${label}`);
    }
  }

  private alreadyHeld(request: PrepareReceive, held: StoredPayload): ReplyBody {
    if (Buffer.compare(held.manifest.rootSha256, request.targetRootSha256) !== 0)
      throw new DdfError('ALREADY_EXISTS', `version ${held.manifest.version} is held here with other bytes`, {
        where: this.core.options.name,
        remedy: 'Versions are immutable: choose the next number, or drop this one.',
      });
    const { label } = request;
    const bytesDone = request.payload!.sizeBytes;
    const state = TransferState.VERIFIED;
    this.core.announceHeld(held);
    this.core.statuses.begin(label, { state, status: () => ({ label, state, bytesDone }) });
    this.core.statuses.end(label);
    return {};
  }

  /** A base counts as held only if its bytes still have their hash. */
  private async proveBase(request: PrepareReceive): Promise<StoredPayload> {
    const { objectId, baseVersion } = request.payload!;
    const { workers, name } = this.core.options;
    const remedy = 'Roll out again: the planner then sends the full image.';
    const base = this.core.store.findVersion(objectId, baseVersion);
    if (base === undefined)
      throw new DdfError('BASE_MISMATCH', `base version ${baseVersion} is not held here`, { where: name, remedy });
    const owner = transferOwner(name, request.label);
    const unpin = this.core.store.pin(base.manifest);
    try {
      const hashes = await workers.run({ kind: 'hash-file', path: base.dataPath }, owner);
      if (Buffer.compare(hashes.rootSha256, base.manifest.rootSha256) === 0) return base;
    } catch (error) {
      if (!(error instanceof DdfError) || (error.code !== 'NOT_FOUND' && error.code !== 'HASH_MISMATCH')) throw error;
    } finally {
      unpin();
    }
    this.core.store.distrust(objectId, baseVersion);
    this.core.announceDropped(objectId, baseVersion);
    throw new DdfError('BASE_MISMATCH', `the bytes of base version ${baseVersion} are damaged here`, {
      where: name,
      remedy,
    });
  }

  /** Chunks that an earlier run had verified count again if they still have their hash. */
  private async proveClaimed(label: number, receiving: ReceivingPayload): Promise<void> {
    const { manifest, dataPath, expected } = receiving;
    if (manifest === undefined) return;
    const { workers, name } = this.core.options;
    const owner = transferOwner(name, label);
    for (const chunk of receiving.claimedChunks) {
      const found = await workers.run(
        { kind: 'hash-chunk', path: dataPath, chunk, sizeBytes: expected.sizeBytes },
        owner,
      );
      if (Buffer.compare(found, chunkSha256At(manifest, chunk)) === 0) receiving.markVerified(chunk);
    }
  }

  private requireWanted(label: number): void {
    if (!this.core.isRunning || this.preparing.get(label)?.isAborted)
      throw new DdfError('CANCELLED', `the transfer with label ${label} was ended while it was prepared`);
  }

  /** Of a label that is not known there is nothing to update. */
  private async updateReceive(request: UpdateReceive): Promise<ReplyBody> {
    const { label, stripes } = request;
    // Whether preparing fails is told to whoever asked for it.
    await this.preparing.get(label)?.done.catch(() => {});
    const incoming = this.transfers.get(label);
    if (incoming === undefined) return {};
    this.checkStripes(request);
    incoming.setStripes(stripes);
    this.noteLabels(label, incoming);
    return {};
  }

  private noteLabels(label: number, incoming: Incoming): void {
    this.dropLabels(label);
    for (const stripe of incoming.labels) this.receiveLabels.set(stripe, label);
  }

  private dropLabels(label: number): void {
    for (const [stripe, receive] of this.receiveLabels) if (receive === label) this.receiveLabels.delete(stripe);
  }

  private forget(label: number): void {
    this.transfers.delete(label);
    this.dropLabels(label);
  }

  private endTransfer({ label, complete }: EndTransfer): ReplyBody {
    const preparing = this.preparing.get(label);
    if (preparing !== undefined) {
      preparing.isAborted = true;
      this.cancelJobs(label);
    }
    const incoming = this.transfers.get(label);
    this.core.statuses.forget(label);
    if (incoming === undefined) return {};
    // Complete says that the stream is over; who still misses something goes on by unicast.
    if (!complete) incoming.abort('the transfer was ended by the controller');
    if (incoming.isOver) {
      incoming.close();
      this.forget(label);
    }
    return {};
  }

  private cancelJobs(label: number): void {
    this.core.options.workers.cancel(transferOwner(this.core.options.name, label));
  }

  private forgetOver(): void {
    for (const [label, incoming] of this.transfers) {
      if (this.transfers.size <= KEPT_OVER) return;
      if (!incoming.isOver) continue;
      incoming.close();
      this.forget(label);
    }
  }
}
