import type { Scheduler } from '../../../base/clock.ts';
import type { P4Data } from '../../../wire/p4runtime/messages.ts';
import { type DigestEntry, type DigestEntryConfig, type Entity, UpdateType } from '../../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import type { DigestInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import type { ProgramControl } from '../../control.ts';
import { digestBuilder } from '../digest-data.ts';
import { DigestLists, type DigestListToSend } from '../digests.ts';
import { RpcError } from '../rpc-error.ts';
import { objectById, objectsById } from '../validation.ts';
import type { EntityKind, Undo } from './entity-kind.ts';

interface Digest {
  readonly info: DigestInfo;
  readonly build: (values: readonly bigint[]) => P4Data;
  config: DigestEntryConfig | undefined;
  /** While it is enabled and the program runs. */
  lists: DigestLists | undefined;
}

/** Which digests are sent, and how (P4Runtime 1.5, section "DigestEntry"). */
export class DigestEntries implements EntityKind<DigestEntry> {
  private readonly info: P4InfoIndex;
  private readonly byName = new Map<string, Digest>();
  private running: { readonly scheduler: Scheduler; readonly send: (list: DigestListToSend) => boolean } | undefined;
  private lastListId = 0n;

  /** Throws DdfError UNSUPPORTED_PROGRAM, PROGRAM_MISMATCH. */
  constructor(info: P4InfoIndex, control: ProgramControl) {
    this.info = info;
    for (const digest of info.digests) {
      const build = digestBuilder(digest, control.digests.get(digest.name)!, info.p4Info);
      this.byName.set(digest.name, { info: digest, build, config: undefined, lists: undefined });
    }
  }

  /** From now on messages are collected and sent; `send` returns whether anybody got the list. */
  start(scheduler: Scheduler, send: (list: DigestListToSend) => boolean): void {
    this.running = { scheduler, send };
    for (const digest of this.byName.values()) this.configure(digest, digest.config);
  }

  stop(): void {
    for (const digest of this.byName.values()) digest.lists?.stop();
    this.running = undefined;
  }

  /** A message from the packet path. */
  message(name: string, values: readonly bigint[]): void {
    const digest = this.byName.get(name);
    digest?.lists?.add(values.join(), () => digest.build(values));
  }

  /** Throws INVALID_ARGUMENT for a digest that the program does not have; a list that is not waited for any more is fine. */
  acknowledge(digestId: number, listId: bigint): void {
    const { name } = objectById(this.info.digests, digestId);
    this.byName.get(name)!.lists?.acknowledge(listId);
  }

  write(type: UpdateType, entity: DigestEntry): Undo {
    const info = objectById(this.info.digests, entity.digestId);
    const digest = this.byName.get(info.name)!;
    const before = digest.config;
    if (type === UpdateType.INSERT && before !== undefined)
      throw new RpcError('ALREADY_EXISTS', `Digest ${info.name} is enabled already`);
    if (type !== UpdateType.INSERT && before === undefined)
      throw new RpcError('NOT_FOUND', `Digest ${info.name} is not enabled`);
    this.configure(digest, type === UpdateType.DELETE ? undefined : parseConfig(entity.config, info));
    return () => this.configure(digest, before);
  }

  private configure(digest: Digest, config: DigestEntryConfig | undefined): void {
    digest.lists?.stop();
    digest.config = config;
    digest.lists =
      config === undefined || this.running === undefined
        ? undefined
        : new DigestLists(digest.info.id, config, this.running.scheduler, () => ++this.lastListId, this.running.send);
  }

  read(filter: DigestEntry): Entity[] {
    return [...objectsById(this.info.digests, filter.digestId)].flatMap(({ id, name }) => {
      const { config } = this.byName.get(name)!;
      return config === undefined ? [] : [{ digestEntry: { digestId: id, config } }];
    });
  }
}

function parseConfig(config: DigestEntryConfig | undefined, info: DigestInfo): DigestEntryConfig {
  if (config === undefined) throw new RpcError('INVALID_ARGUMENT', `Digest ${info.name}: the config is missing`);
  if (config.maxTimeoutNs < 0n || config.maxListSize < 0 || config.ackTimeoutNs < 0n)
    throw new RpcError('INVALID_ARGUMENT', `Digest ${info.name}: time-outs and sizes are never negative`);
  return config;
}
