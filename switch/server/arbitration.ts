import type { MasterArbitrationUpdate } from '../../wire/p4runtime/messages.ts';
import { RoleScope } from './roles.ts';
import { RpcCode, RpcError } from './rpc-error.ts';

/** 128 bits, compared as (high, low) unsigned. */
export interface ElectionId {
  readonly high: bigint;
  readonly low: bigint;
}

export function compareElectionIds(a: ElectionId, b: ElectionId): number {
  if (a.high !== b.high) return a.high < b.high ? -1 : 1;
  if (a.low !== b.low) return a.low < b.low ? -1 : 1;
  return 0;
}

function sameElectionId(a: ElectionId | undefined, b: ElectionId | undefined): boolean {
  return a !== undefined && b !== undefined && compareElectionIds(a, b) === 0;
}

/** A live stream of a controller, as arbitration sees it. */
export interface Contender {
  notify(update: MasterArbitrationUpdate): void;
}

/**
 * Decides who is primary for one (device, role), by the rules of P4Runtime 1.5, sections "Rules for Handling MasterArbitrationUpdate Messages" and
 * "Client Arbitration Notifications". The highest election id ever seen outlives all streams.
 *
 * Writes are executed within one turn of the event loop, so that none is in flight when a new primary is chosen.
 */
export class RoleArbiter {
  private readonly deviceId: bigint;
  readonly role: string;
  private readonly maxContenders: number;
  private readonly contenders = new Map<Contender, ElectionId | undefined>();
  private currentScope = new RoleScope();
  private highest: ElectionId | undefined;
  private current: Contender | undefined;

  constructor(deviceId: bigint, role: string, maxContenders: number) {
    this.deviceId = deviceId;
    this.role = role;
    this.maxContenders = maxContenders;
  }

  get primary(): Contender | undefined {
    return this.current;
  }

  /** What the primary may do; without one what the last one might. */
  get scope(): RoleScope {
    return this.currentScope;
  }

  /** Whether a request with this election id comes from the primary. */
  isPrimary(electionId: ElectionId | undefined): boolean {
    return this.current !== undefined && sameElectionId(this.contenders.get(this.current), electionId);
  }

  /**
   * A contender's first or later update.
   * @throws RpcError INVALID_ARGUMENT when the id belongs to another live stream, RESOURCE_EXHAUSTED for too many streams; nothing has changed then
   */
  update(contender: Contender, electionId: ElectionId | undefined, scope = new RoleScope()): void {
    for (const [other, id] of this.contenders)
      if (other !== contender && sameElectionId(id, electionId))
        throw new RpcError(
          'INVALID_ARGUMENT',
          `Election id ${describeElectionId(electionId!)} is used by another live stream`,
        );
    if (!this.contenders.has(contender) && this.contenders.size >= this.maxContenders)
      throw new RpcError('RESOURCE_EXHAUSTED', `${this.contenders.size} streams are open already, no more are served`);
    this.contenders.set(contender, electionId);
    if (electionId !== undefined && (this.highest === undefined || compareElectionIds(electionId, this.highest) >= 0)) {
      this.highest = electionId;
      this.current = contender;
      this.currentScope = scope;
      this.notifyBackups();
      this.notify(contender);
    } else if (this.current === contender) {
      this.current = undefined;
      this.notifyBackups();
    } else this.notify(contender);
  }

  /** A stream has ended. Nobody takes the place of a primary that leaves: the others have to bid. */
  leave(contender: Contender): void {
    if (!this.contenders.delete(contender)) return;
    if (this.current !== contender) return;
    this.current = undefined;
    this.notifyBackups();
  }

  private notifyBackups(): void {
    for (const contender of this.contenders.keys()) if (contender !== this.current) this.notify(contender);
  }

  private notify(contender: Contender): void {
    contender.notify({
      deviceId: this.deviceId,
      role: this.role === '' ? undefined : { id: 0n, name: this.role },
      electionId: this.highest === undefined ? undefined : { ...this.highest },
      status: this.statusFor(contender),
    });
  }

  private statusFor(contender: Contender): { code: number; message: string; details: [] } {
    if (contender === this.current) return { code: RpcCode.OK, message: 'you are primary', details: [] };
    if (this.current !== undefined)
      return { code: RpcCode.ALREADY_EXISTS, message: 'another stream is primary', details: [] };
    return { code: RpcCode.NOT_FOUND, message: 'there is no primary', details: [] };
  }
}

export function describeElectionId(id: ElectionId): string {
  return id.high === 0n ? `${id.low}` : `${id.high}:${id.low}`;
}
