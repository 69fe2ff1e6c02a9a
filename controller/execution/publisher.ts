import { isAbsolute } from 'node:path';
import { DdfError } from '../../base/errors.ts';
import { CHUNK_BYTES } from '../../objects/chunks.ts';
import type { Topology } from '../../topologies/types.ts';
import type { HeldVersion, ImportVersion, Payload } from '../../wire/agent/messages.ts';
import type { AgentServer } from '../agents/agent-server.ts';
import { checkClaim } from '../agents/hello.ts';
import type { Directory } from '../directory/directory.ts';
import type { Claim, PayloadRecord } from '../directory/types.ts';
import type { PublishRequest } from '../service.ts';

const MAX_VERSION = 0xffff_ffff;
const NAME = /^[A-Za-z0-9._/-]{1,200}$/;
/** Reading, hashing and comparing a terabyte takes about an hour. */
const WORK_TIMEOUT_US = 4 * 3600 * 1_000_000;
const DROP_TIMEOUT_US = 10_000_000;

export interface PublisherOptions {
  readonly topology: Topology;
  readonly directory: Directory;
  readonly agents: Pick<AgentServer, 'find' | 'request'>;
}

/** Brings versions into the fabric: a Memory Node reads and hashes the file, makes the payloads, and only then the directory knows it. */
export class Publisher {
  private readonly options: PublisherOptions;
  private readonly busy = new Set<string>();

  constructor(options: PublisherOptions) {
    this.options = options;
  }

  /**
   * Publishing the same bytes again is no change. After a failure the version is as if it had not been published.
   * @returns the object's id
   * @throws DdfError INVALID_REQUEST, NOT_FOUND (base, Memory Node), AGENT_UNREACHABLE, CONFLICT (the version is being published), ALREADY_EXISTS
   *   (other bytes), and what the Memory Node could not do: INVALID_FILE, FILE_CHANGED, BASE_MISMATCH, NO_SPACE, ...
   */
  async publish(request: PublishRequest): Promise<bigint> {
    checkRequest(request);
    const key = `${request.object}@${request.version}`;
    if (this.busy.has(key))
      throw new DdfError('CONFLICT', `${key} is being published`, {
        where: key,
        remedy: 'Wait until that has ended.',
        recoverable: true,
      });
    this.busy.add(key);
    try {
      return await this.work(request);
    } finally {
      this.busy.delete(key);
    }
  }

  private async work({ object, version, path, base, memoryNode }: PublishRequest): Promise<bigint> {
    const { directory, agents } = this.options;
    if (base !== undefined) this.requireBase(object, base);
    const node = this.choose(object, version, base, memoryNode);
    const { objectId } = directory.ensureObject(object);
    const isNew = !directory.holds(node, objectId, version);
    const imported = await this.import(node, { objectId, version, path }, object);
    try {
      const claim = checkImported(imported, objectId, version, node);
      const payloads = [await this.makePayload(node, objectId, version, 0)];
      if (base !== undefined) payloads.push(await this.makePayload(node, objectId, version, base));
      directory.recordVersion(claim, CHUNK_BYTES);
      directory.recordHeld(node, claim);
      for (const payload of payloads) directory.recordPayload(payload, node);
      return objectId;
    } catch (error) {
      // What nobody knows of would only take space.
      if (isNew) agents.request(node, { dropVersion: { objectId, version } }, DROP_TIMEOUT_US).catch(() => {});
      throw error;
    }
  }

  private async import(node: string, request: ImportVersion, object: string): Promise<HeldVersion | undefined> {
    const { directory, agents } = this.options;
    const { objectId, version } = request;
    const ask = async (): Promise<HeldVersion | undefined> =>
      (await agents.request(node, { importVersion: request }, WORK_TIMEOUT_US)).imported;
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof DdfError) || error.code !== 'ALREADY_EXISTS') throw error;
      if (directory.findVersion(objectId, version) !== undefined)
        throw new DdfError('ALREADY_EXISTS', `version ${version} of ${object} exists with other bytes`, {
          where: `${object}@${version}`,
          remedy: 'A version never changes: publish these bytes under a new version number.',
          cause: error,
        });
      // Left by a publication that the controller did not survive: nobody ever heard of it.
      await agents.request(node, { dropVersion: { objectId, version } }, DROP_TIMEOUT_US);
      return ask();
    }
  }

  private requireBase(object: string, base: number): void {
    const { directory } = this.options;
    const objectId = directory.findObject(object)?.objectId;
    if (objectId === undefined || directory.findVersion(objectId, base) === undefined)
      throw new DdfError('NOT_FOUND', `object "${object}" has no version ${base} to make a delta from`, {
        where: 'base',
        remedy: 'Publish the base first, or leave it out.',
      });
  }

  /**
   * The Memory Node that was asked for, or of the attached ones that hold the base: one that has the version already, so that publishing
   * again makes no further copy, else the one with the fewest bytes.
   */
  private choose(object: string, version: number, base: number | undefined, wanted: string | undefined): string {
    const { topology, directory, agents } = this.options;
    const nodes = topology.hosts.filter((host) => host.kind === 'memory-node').map((host) => host.name);
    const objectId = directory.findObject(object)?.objectId;
    const hasBase = (node: string): boolean =>
      base === undefined || (objectId !== undefined && directory.holds(node, objectId, base));
    if (wanted !== undefined) {
      if (!nodes.includes(wanted))
        throw new DdfError('NOT_FOUND', `the topology ${topology.name} has no Memory Node "${wanted}"`, {
          where: 'memoryNode',
          remedy: 'GET /v1/memory-nodes lists them.',
        });
      if (!hasBase(wanted))
        throw new DdfError('CONFLICT', `${wanted} does not hold version ${base}, which the delta starts from`, {
          where: 'memoryNode',
          remedy: 'Leave the Memory Node out: one that holds the base is taken.',
        });
      return wanted;
    }
    const heldBytes = (node: string): number =>
      directory.heldBy(node).reduce((sum, holding) => sum + holding.sizeBytes, 0);
    const [best] = nodes
      .filter((node) => agents.find(node) !== undefined && hasBase(node))
      .map((node) => ({
        node,
        has: objectId !== undefined && directory.holds(node, objectId, version) ? 1 : 0,
        bytes: heldBytes(node),
      }))
      .sort((a, b) => b.has - a.has || a.bytes - b.bytes);
    if (best !== undefined) return best.node;
    throw new DdfError(
      'AGENT_UNREACHABLE',
      base === undefined ? 'no Memory Node is attached' : `no Memory Node that holds version ${base} is attached`,
      { where: 'memoryNode', remedy: 'Start one: `ddf memory-node`.', recoverable: true },
    );
  }

  private async makePayload(
    node: string,
    objectId: bigint,
    version: number,
    baseVersion: number,
  ): Promise<Omit<PayloadRecord, 'memoryNodes'>> {
    const { agents } = this.options;
    const { payload } = await agents.request(node, { makeDelta: { objectId, version, baseVersion } }, WORK_TIMEOUT_US);
    return checkPayload(payload, objectId, version, baseVersion, node);
  }
}

function checkRequest({ object, version, path, base }: PublishRequest): void {
  const invalid = (where: string, message: string, remedy: string): DdfError =>
    new DdfError('INVALID_REQUEST', message, { where, remedy });
  const isVersion = (value: number): boolean => Number.isInteger(value) && value >= 1 && value <= MAX_VERSION;
  if (!NAME.test(object))
    throw invalid('object', `"${object}" is not a name of an object`, 'Use 1 to 200 letters, digits and ._-/.');
  if (!isVersion(version))
    throw invalid('version', `${version} is not a version`, `Give a number from 1 to ${MAX_VERSION}.`);
  if (!isAbsolute(path))
    throw invalid(
      'path',
      `"${path}" is not an absolute path`,
      'Give the absolute path of a file that the Memory Node can read.',
    );
  if (base === undefined) return;
  if (!isVersion(base)) throw invalid('base', `${base} is not a version`, `Give a number from 1 to ${MAX_VERSION}.`);
  if (base === version)
    throw invalid('base', `version ${version} cannot be its own base`, 'Name another version as the base.');
}

function checkImported(imported: HeldVersion | undefined, objectId: bigint, version: number, node: string): Claim {
  if (imported === undefined || imported.objectId !== objectId || imported.version !== version)
    throw wrongReply(node, 'importVersion');
  return checkClaim(imported, node);
}

function checkPayload(
  payload: Payload | undefined,
  objectId: bigint,
  version: number,
  baseVersion: number,
  node: string,
): Omit<PayloadRecord, 'memoryNodes'> {
  if (
    payload === undefined ||
    payload.objectId !== objectId ||
    payload.version !== version ||
    payload.baseVersion !== baseVersion ||
    payload.manifestSha256.length !== 32
  )
    throw wrongReply(node, 'makeDelta');
  const { sizeBytes, manifestBytes, manifestSha256 } = payload;
  return { objectId, version, base: baseVersion, sizeBytes: Number(sizeBytes), manifestBytes, manifestSha256 };
}

function wrongReply(node: string, request: string): DdfError {
  return new DdfError('AGENT_FAILED', `${node} replied to ${request} with something else`, {
    where: node,
    remedy: 'Start the agent and the controller from the same release.',
  });
}
