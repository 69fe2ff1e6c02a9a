import { DdfError } from '../base/errors.ts';
import { formatPayloadId, type PayloadId } from '../objects/ids.ts';
import { CODEC_XOR_ZSTD, deltaManifest, fullManifest } from '../objects/manifest.ts';
import { FABRIC_UDP_PORT } from '../p4/build/constants.ts';
import {
  AgentKind,
  type EndTransfer,
  type ImportVersion,
  type MakeDelta,
  type Request,
  type StartSend,
  type UpdateSend,
} from '../wire/agent/messages.ts';
import {
  type Agent,
  AgentCore,
  type AgentOptions,
  heldVersion,
  payloadIdOf,
  payloadMessage,
  type ReplyBody,
  required,
  unknownRequest,
} from './agent.ts';
import { Outgoing } from './outgoing.ts';
import { userFileBytes } from './store/import-file.ts';
import type { StoredPayload } from './store/store.ts';

/** Bytes that a delta may be longer than its target: headers of frames of 1 MiB. */
const DELTA_OVERHEAD = 1 / 65_536;
/** Ended transfers whose labels are remembered, so that asking again is no error. */
const KEPT_ENDED = 256;

/** The Memory Node: holds objects, makes deltas, sends streams, answers repairs and range reads. */
export function createMemoryNode(options: AgentOptions): Agent {
  const core = new AgentCore(options, (owner) => {
    const node = new MemoryNode(owner);
    return {
      kind: AgentKind.MEMORY_NODE,
      fabricPort: FABRIC_UDP_PORT,
      transfer: (label) => node.sending(label),
      execute: (request) => node.execute(request),
      close: () => node.close(),
    };
  });
  return core.face();
}

class MemoryNode {
  private readonly core: AgentCore;
  private readonly transfers = new Map<number, Outgoing>();
  /** Deltas that are being made, so that asking twice makes one. */
  private readonly making = new Map<string, Promise<StoredPayload>>();

  constructor(core: AgentCore) {
    this.core = core;
  }

  sending(label: number): Outgoing | undefined {
    return this.transfers.get(label);
  }

  async execute(request: Request): Promise<ReplyBody> {
    const { importVersion, makeDelta, startSend, updateSend, endTransfer } = request;
    if (importVersion !== undefined) return { imported: heldVersion(await this.import(importVersion)) };
    if (makeDelta !== undefined) return { payload: payloadMessage(await this.payloadFor(makeDelta)) };
    if (startSend !== undefined) return this.startSend(startSend);
    if (updateSend !== undefined) return this.updateSend(updateSend);
    if (endTransfer !== undefined) return this.endTransfer(endTransfer);
    throw unknownRequest('Memory Node');
  }

  close(): void {
    for (const outgoing of this.transfers.values()) outgoing.abort();
    this.core.options.workers.cancel(this.core.options.name);
  }

  private async import({ objectId, version, path }: ImportVersion): Promise<StoredPayload> {
    if (version === 0) throw new DdfError('INVALID_REQUEST', 'versions start at 1', { where: 'version' });
    const { store } = this.core;
    const work = store.begin(userFileBytes(path));
    let stored: StoredPayload;
    try {
      const { workers, name } = this.core.options;
      const hashes = await workers.run({ kind: 'import-file', source: path, target: work.dataPath }, name);
      stored = await store.commit(work, fullManifest(objectId, version, hashes));
    } catch (error) {
      store.discard(work);
      throw error;
    }
    this.core.announceHeld(stored);
    return stored;
  }

  private async payloadFor({ objectId, version, baseVersion }: MakeDelta): Promise<StoredPayload> {
    const target = this.core.requireVersion(objectId, version);
    if (baseVersion === 0) return target;
    const base = this.core.requireVersion(objectId, baseVersion);
    const id = { objectId, version, baseVersion };
    const known = this.core.store.find(id);
    if (known !== undefined) return known;
    const name = formatPayloadId(id);
    let making = this.making.get(name);
    if (making === undefined) {
      making = this.makeDelta(id, base, target).finally(() => this.making.delete(name));
      this.making.set(name, making);
    }
    return making;
  }

  private async makeDelta(id: PayloadId, base: StoredPayload, target: StoredPayload): Promise<StoredPayload> {
    const { store } = this.core;
    const { workers, name } = this.core.options;
    const unpin = [store.pin(base.manifest), store.pin(target.manifest)];
    try {
      const work = store.begin(Math.ceil(target.manifest.sizeBytes * (1 + DELTA_OVERHEAD)) + 64);
      try {
        const hashes = await workers.run(
          { kind: 'make-delta', base: base.dataPath, target: target.dataPath, delta: work.dataPath },
          name,
        );
        return await store.commit(work, deltaManifest(id, CODEC_XOR_ZSTD, hashes, base.manifest, target.manifest));
      } finally {
        store.discard(work);
      }
    } finally {
      for (const release of unpin) release();
    }
  }

  private startSend(request: StartSend): ReplyBody {
    const { label } = request;
    const payload = required(request.payload, 'payload');
    const id = payloadIdOf(payload);
    const running = this.transfers.get(label);
    if (running !== undefined) {
      if (formatPayloadId(payloadIdOf(running.request.payload!)) === formatPayloadId(id)) return {};
      throw new DdfError('CONFLICT', `label ${label} belongs to another payload`, { where: 'label' });
    }
    const stored = this.core.store.find(id);
    if (stored === undefined)
      throw new DdfError('NOT_FOUND', `payload ${formatPayloadId(id)} is not held here`, {
        where: this.core.options.name,
        remedy: 'Ask for it with makeDelta first.',
      });
    if (Buffer.compare(stored.manifestSha256, payload.manifestSha256) !== 0)
      throw new DdfError('CONFLICT', `payload ${formatPayloadId(id)} has another manifest here`, {
        where: this.core.options.name,
      });
    this.transfers.set(label, new Outgoing(this.core, request, stored));
    this.forgetEnded();
    return {};
  }

  private updateSend({ label, rateFloorBitsPerSecond, rateCeilingBitsPerSecond }: UpdateSend): ReplyBody {
    const outgoing = this.transfers.get(label);
    if (outgoing === undefined)
      throw new DdfError('NOT_FOUND', `no transfer has label ${label} here`, { where: this.core.options.name });
    if (!outgoing.isOver) outgoing.setRate(rateFloorBitsPerSecond, rateCeilingBitsPerSecond);
    return {};
  }

  private endTransfer({ label, complete }: EndTransfer): ReplyBody {
    const outgoing = this.transfers.get(label);
    if (outgoing === undefined || outgoing.isOver) this.core.statuses.forget(label);
    else if (complete) outgoing.complete();
    else outgoing.abort();
    return {};
  }

  private forgetEnded(): void {
    for (const [label, outgoing] of this.transfers)
      if (this.transfers.size > KEPT_ENDED && outgoing.isOver) this.transfers.delete(label);
  }
}
