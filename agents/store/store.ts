import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DdfError } from '../../base/errors.ts';
import {
  formatObjectId,
  formatPayloadId,
  type ObjectId,
  type PayloadId,
  parseObjectId,
  parsePayloadId,
} from '../../objects/ids.ts';
import { decodeManifest, encodeManifest, type Manifest, manifestSha256 } from '../../objects/manifest.ts';
import { UNFINISHED, withFileErrors, writeFileAtomically } from './files.ts';
import { type ExpectedPayload, ReceivingPayload } from './receiving.ts';

export interface StoreOptions {
  readonly directory: string;
  /** Default: what the file system has. */
  readonly capacityBytes?: number;
  /**
   * Whether a commit waits until the bytes are on the disk, so that it survives a power failure. Default true; false where the directory
   * goes away with the process.
   */
  readonly durable?: boolean;
}

/** A payload whose bytes were proved: the image of a version (base version 0) or a delta. Never changes. */
export interface StoredPayload {
  readonly manifest: Manifest;
  readonly manifestBytes: number;
  readonly manifestSha256: Uint8Array;
  readonly dataPath: string;
  readonly manifestPath: string;
}

/** Space and a directory for bytes that are being made; it ends in {@link Store.commit} or {@link Store.discard}. */
export interface Work {
  readonly directory: string;
  /** Where the payload's bytes go. */
  readonly dataPath: string;
  readonly reservedBytes: number;
}

/**
 * Payloads as files below one directory:
 *
 *     payloads/<payload>/{data,manifest}             proved and immutable
 *     receiving/<payload>-<hash>/{data,manifest,verified}   on their way in, kept over a restart
 *     temporary/work-NNN/                             being made or dropped; emptied at open
 *     active/<object>                                the version that consumers read
 *
 * Everything becomes visible by one rename: after a crash at any point a payload is there as a whole or not at all.
 */
export class Store {
  /** What was found damaged at open and removed, for the log. */
  readonly damaged: readonly string[];
  private readonly directory: string;
  private readonly capacityBytes: number;
  private readonly durable: boolean;
  private readonly payloads = new Map<string, StoredPayload>();
  private readonly receivings = new Map<string, ReceivingPayload>();
  /** Bytes of payloads that wait in receiving/ for somebody to go on with them. */
  private readonly dormant = new Map<string, number>();
  private readonly activeVersions = new Map<ObjectId, number>();
  private readonly pins = new Map<string, number>();
  private readonly works = new Set<Work>();

  /** Opens or creates the store. */
  constructor(options: StoreOptions) {
    this.directory = options.directory;
    this.capacityBytes = options.capacityBytes ?? Number.POSITIVE_INFINITY;
    this.durable = options.durable ?? true;
    this.damaged = withFileErrors(this.directory, () => {
      rmSync(this.path('temporary'), { recursive: true, force: true });
      for (const part of ['temporary', 'payloads', 'receiving', 'active'])
        mkdirSync(this.path(part), { recursive: true });
      const damaged = [...this.loadPayloads(), ...this.loadActive()];
      this.loadDormant();
      for (const path of damaged) rmSync(path, { recursive: true, force: true });
      return damaged;
    });
  }

  /** Bytes of payloads, of those on their way in (in full), and of what is being made. */
  get usedBytes(): number {
    let sum = 0;
    for (const { reservedBytes } of this.works) sum += reservedBytes;
    for (const { manifest } of this.payloads.values()) sum += manifest.sizeBytes;
    for (const { expected } of this.receivings.values()) sum += expected.sizeBytes;
    for (const sizeBytes of this.dormant.values()) sum += sizeBytes;
    return sum;
  }

  find(id: PayloadId): StoredPayload | undefined {
    return this.payloads.get(formatPayloadId(id));
  }

  findVersion(objectId: ObjectId, version: number): StoredPayload | undefined {
    return this.find({ objectId, version, baseVersion: 0 });
  }

  /** The images, in no order. */
  versions(): StoredPayload[] {
    return [...this.payloads.values()].filter(({ manifest }) => manifest.baseVersion === 0);
  }

  /** @throws DdfError NO_SPACE when `bytes` more would not fit */
  requireSpace(bytes: number): void {
    const room = this.capacityBytes - this.usedBytes;
    const { bavail, bsize } = statfsSync(this.directory);
    const free = Math.min(room, bavail * bsize);
    if (bytes > free)
      throw new DdfError('NO_SPACE', `the store needs ${bytes} bytes more and has room for ${Math.max(0, free)}`, {
        where: this.directory,
        remedy: 'Drop versions or give the store more room.',
        recoverable: true,
      });
  }

  /** @throws DdfError NO_SPACE */
  begin(reserveBytes: number): Work {
    this.requireSpace(reserveBytes);
    const directory = this.temporaryDirectory();
    const work = { directory, dataPath: join(directory, 'data'), reservedBytes: reserveBytes };
    this.works.add(work);
    return work;
  }

  /** Idempotent, also after {@link commit}. */
  discard(work: Work): void {
    this.works.delete(work);
    rmSync(work.directory, { recursive: true, force: true });
  }

  /**
   * Makes the bytes at `work.dataPath`, which the caller has found to be what `manifest` says, a payload. The same payload again is no
   * error: the bytes that are there stay. `work` is over afterwards, also after an error.
   * @throws DdfError ALREADY_EXISTS when a payload of this name has other bytes, NO_SPACE
   */
  async commit(work: Work, manifest: Manifest): Promise<StoredPayload> {
    try {
      return await this.commitDirectory(work.directory, manifest);
    } finally {
      this.discard(work);
    }
  }

  /** Makes a received payload, all of whose chunks are verified, a payload of the store. */
  async commitReceived(receiving: ReceivingPayload): Promise<StoredPayload> {
    const { manifest } = receiving;
    if (manifest === undefined || !receiving.isComplete)
      throw new DdfError(
        'INTERNAL',
        `payload ${formatPayloadId(receiving.expected)} is committed before it is complete`,
      );
    receiving.close();
    const stored = await this.commitDirectory(receiving.directory, manifest);
    this.discardReceived(receiving);
    return stored;
  }

  /**
   * Takes over another store's payload: a link to the same bytes where the file system can, a copy otherwise. For preparing many emulated
   * servers on one machine; its hashes are taken on trust.
   */
  async adopt(payload: StoredPayload): Promise<StoredPayload> {
    const work = this.begin(payload.manifest.sizeBytes);
    try {
      linkSync(payload.dataPath, work.dataPath);
    } catch {
      withFileErrors(work.dataPath, () => copyFileSync(payload.dataPath, work.dataPath));
    }
    return this.commit(work, payload.manifest);
  }

  /**
   * Opens the payload for receiving, with what an earlier run has left of it.
   * @throws DdfError NO_SPACE, CONFLICT when it is being received already
   */
  receive(expected: ExpectedPayload): ReceivingPayload {
    const name = receivingName(expected);
    if (this.receivings.has(name))
      throw new DdfError('CONFLICT', `payload ${formatPayloadId(expected)} is being received already`);
    this.requireSpace(expected.sizeBytes - (this.dormant.get(name) ?? 0));
    this.dormant.delete(name);
    const directory = this.path('receiving', name);
    const receiving = withFileErrors(directory, () => new ReceivingPayload(directory, expected));
    this.receivings.set(name, receiving);
    return receiving;
  }

  /** Closes it and keeps what was verified for later. */
  suspendReceived(receiving: ReceivingPayload): void {
    receiving.close();
    const name = receivingName(receiving.expected);
    this.receivings.delete(name);
    this.dormant.set(name, receiving.expected.sizeBytes);
  }

  discardReceived(receiving: ReceivingPayload): void {
    this.suspendReceived(receiving);
    this.dormant.delete(receivingName(receiving.expected));
    rmSync(receiving.directory, { recursive: true, force: true });
  }

  /** Keeps a payload from being dropped until the returned function was called. */
  pin(id: PayloadId): () => void {
    const name = formatPayloadId(id);
    this.pins.set(name, (this.pins.get(name) ?? 0) + 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const left = this.pins.get(name)! - 1;
      if (left === 0) this.pins.delete(name);
      else this.pins.set(name, left);
    };
  }

  /**
   * Removes a version's image and the deltas that lead to it. Nothing happens if it is not there.
   * @returns whether it was there
   * @throws DdfError CONFLICT while it is active or in use
   */
  drop(objectId: ObjectId, version: number): boolean {
    const names = [...this.payloads.values()]
      .map(({ manifest }) => manifest)
      .filter((manifest) => manifest.objectId === objectId && manifest.version === version)
      .map(formatPayloadId);
    const what = `version ${version} of object ${formatObjectId(objectId)}`;
    if (this.activeVersions.get(objectId) === version)
      throw new DdfError('CONFLICT', `${what} is active`, { remedy: 'Activate another version first.' });
    if (names.some((name) => this.pins.has(name)))
      throw new DdfError('CONFLICT', `${what} is in use by a transfer`, {
        remedy: 'Wait until it ends.',
        recoverable: true,
      });
    const was = this.findVersion(objectId, version) !== undefined;
    for (const name of names) this.removePayload(name);
    return was;
  }

  /**
   * Stops counting a version as held because its bytes were found damaged. They are removed unless consumers read them now: then they stay
   * until the store is opened again.
   */
  distrust(objectId: ObjectId, version: number): void {
    const name = formatPayloadId({ objectId, version, baseVersion: 0 });
    if (!this.payloads.has(name)) return;
    if (this.activeVersions.get(objectId) === version) this.payloads.delete(name);
    else this.removePayload(name);
  }

  /** The version that consumers read now, per object. */
  active(): { objectId: ObjectId; version: number }[] {
    return [...this.activeVersions].map(([objectId, version]) => ({ objectId, version }));
  }

  /**
   * Switches consumers to a version that is held; readers see the old one or the new one.
   * @throws DdfError NOT_FOUND when the version is not held
   */
  activate(objectId: ObjectId, version: number): void {
    if (this.findVersion(objectId, version) === undefined)
      throw new DdfError('NOT_FOUND', `version ${version} of object ${formatObjectId(objectId)} is not held here`, {
        remedy: 'Roll it out to this server first.',
      });
    writeFileAtomically(this.path('active', formatObjectId(objectId)), Buffer.from(`${version}\n`), this.durable);
    this.activeVersions.set(objectId, version);
  }

  /** Closes open files. What is on its way in stays for the next run. */
  close(): void {
    for (const receiving of this.receivings.values()) receiving.close();
    this.receivings.clear();
  }

  private path(...parts: string[]): string {
    return join(this.directory, ...parts);
  }

  private async commitDirectory(directory: string, manifest: Manifest): Promise<StoredPayload> {
    const name = formatPayloadId(manifest);
    const known = this.payloads.get(name) ?? (await this.finishDirectory(directory, manifest));
    if (known !== undefined && Buffer.compare(known.manifest.rootSha256, manifest.rootSha256) !== 0)
      throw new DdfError('ALREADY_EXISTS', `payload ${name} exists with other bytes`, {
        remedy: 'Versions are immutable: choose the next number.',
      });
    if (known !== undefined) return known;
    const target = this.path('payloads', name);
    withFileErrors(target, () => renameSync(directory, target));
    if (this.durable) syncDirectory(this.path('payloads'));
    const stored = describe(target, manifest, encodeManifest(manifest));
    this.payloads.set(name, stored);
    if (manifest.baseVersion === 0) this.removeDormant(manifest.objectId, manifest.version);
    return stored;
  }

  /** A version that is held needs no payload that leads to it. */
  private removeDormant(objectId: ObjectId, version: number): void {
    const prefix = `${formatObjectId(objectId)}-${version}-`;
    for (const name of [...this.dormant.keys()].filter((dormant) => dormant.startsWith(prefix))) {
      this.dormant.delete(name);
      rmSync(this.path('receiving', name), { recursive: true, force: true });
    }
  }

  /** @returns a payload of the same name that was committed while this one was written to the disk */
  private async finishDirectory(directory: string, manifest: Manifest): Promise<StoredPayload | undefined> {
    const manifestPath = join(directory, 'manifest');
    withFileErrors(manifestPath, () => writeFileSync(manifestPath, encodeManifest(manifest)));
    rmSync(join(directory, 'verified'), { force: true });
    if (this.durable) {
      for (const path of [join(directory, 'data'), manifestPath]) {
        const file = await open(path, 'r+');
        await file.datasync().finally(() => file.close());
      }
      syncDirectory(directory);
    }
    return this.payloads.get(formatPayloadId(manifest));
  }

  /** By a rename, so that no crash leaves half of it among the payloads. */
  private removePayload(name: string): void {
    const grave = join(this.temporaryDirectory(), 'dropped');
    withFileErrors(grave, () => renameSync(this.path('payloads', name), grave));
    this.payloads.delete(name);
    rmSync(dirname(grave), { recursive: true, force: true });
  }

  /** A name of its own, since a thread of an earlier run may still be about to write to one of that run's. */
  private temporaryDirectory(): string {
    const prefix = this.path('temporary', 'work-');
    return withFileErrors(prefix, () => mkdtempSync(prefix));
  }

  private loadPayloads(): string[] {
    const damaged: string[] = [];
    for (const name of readdirSync(this.path('payloads'))) {
      const directory = this.path('payloads', name);
      const stored = loadPayload(directory, name);
      if (stored === undefined) damaged.push(directory);
      else this.payloads.set(name, stored);
    }
    return damaged;
  }

  private loadDormant(): void {
    for (const name of readdirSync(this.path('receiving'))) {
      const dataPath = this.path('receiving', name, 'data');
      this.dormant.set(name, existsSync(dataPath) ? statSync(dataPath).size : 0);
    }
  }

  private loadActive(): string[] {
    const damaged: string[] = [];
    for (const name of readdirSync(this.path('active'))) {
      const path = this.path('active', name);
      if (name.endsWith(UNFINISHED)) {
        rmSync(path);
        continue;
      }
      const version = Number(readFileSync(path, 'utf8'));
      const objectId = /^[0-9a-f]{16}$/.test(name) ? parseObjectId(name) : undefined;
      if (objectId !== undefined && this.findVersion(objectId, version) !== undefined)
        this.activeVersions.set(objectId, version);
      else damaged.push(path);
    }
    return damaged;
  }
}

function receivingName(expected: ExpectedPayload): string {
  return `${formatPayloadId(expected)}-${Buffer.from(expected.manifestSha256.subarray(0, 8)).toString('hex')}`;
}

function loadPayload(directory: string, name: string): StoredPayload | undefined {
  const manifestPath = join(directory, 'manifest');
  const dataPath = join(directory, 'data');
  if (parsePayloadId(name) === undefined || !existsSync(manifestPath) || !existsSync(dataPath)) return undefined;
  try {
    const encoded = readFileSync(manifestPath);
    const manifest = decodeManifest(encoded);
    if (formatPayloadId(manifest) !== name || statSync(dataPath).size !== manifest.sizeBytes) return undefined;
    return describe(directory, manifest, encoded);
  } catch {
    return undefined;
  }
}

function describe(directory: string, manifest: Manifest, encoded: Uint8Array): StoredPayload {
  return {
    manifest,
    manifestBytes: encoded.length,
    manifestSha256: manifestSha256(encoded),
    dataPath: join(directory, 'data'),
    manifestPath: join(directory, 'manifest'),
  };
}

/** A rename is on the disk when its directory is. */
function syncDirectory(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
