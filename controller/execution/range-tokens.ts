import type { Random } from '../../base/random.ts';
import { formatPayloadId, type PayloadId } from '../../objects/ids.ts';
import type { Holder } from '../../wire/agent/messages.ts';
import type { AgentServer } from '../agents/agent-server.ts';

const REQUEST_TIMEOUT_US = 5_000_000;

interface Grant {
  readonly agent: string;
  readonly incarnation: bigint;
  readonly payload: PayloadId;
  readonly holder: Promise<Holder>;
}

/** Bearer tokens for range reads: one per rollout, holder and payload, known to the holder before a receiver hears of it. */
export class RangeTokens {
  private readonly agents: Pick<AgentServer, 'find' | 'request'>;
  private readonly random: Random;
  private readonly grants = new Map<string, Map<string, Grant>>();

  constructor(agents: Pick<AgentServer, 'find' | 'request'>, random: Random) {
    this.agents = agents;
    this.random = random;
  }

  /**
   * Where and with which token the payload can be read from this agent.
   * @param owner the rollout: its tokens end together
   * @returns undefined when the agent is away, serves no ranges or does not agree
   */
  async grant(owner: string, agent: string, payload: PayloadId, ttlMs: number): Promise<Holder | undefined> {
    const attached = this.agents.find(agent);
    if (attached === undefined || attached.rangeUrl === '') return undefined;
    const grants = this.grants.get(owner) ?? new Map<string, Grant>();
    this.grants.set(owner, grants);
    // A restarted holder has forgotten the token.
    const key = `${agent}/${attached.incarnation}/${formatPayloadId(payload)}`;
    const known = grants.get(key);
    try {
      if (known !== undefined) return await known.holder;
      const holder = this.allow(agent, attached.rangeUrl, payload, ttlMs);
      grants.set(key, { agent, incarnation: attached.incarnation, payload, holder });
      return await holder;
    } catch {
      grants.delete(key);
      return undefined;
    }
  }

  /** The owner's tokens are good for nothing from now on. */
  withdraw(owner: string): void {
    for (const { agent, incarnation, payload, holder } of this.grants.get(owner)?.values() ?? [])
      holder.then(
        ({ token }) => {
          if (this.agents.find(agent)?.incarnation !== incarnation) return;
          // A holder that does not hear it forgets the token at the end of its time.
          this.agents
            .request(agent, { allowRange: { ...payload, token, ttlMs: 0 } }, REQUEST_TIMEOUT_US)
            .catch(() => {});
        },
        () => {},
      );
    this.grants.delete(owner);
  }

  private async allow(agent: string, rangeUrl: string, payload: PayloadId, ttlMs: number): Promise<Holder> {
    const token = Array.from({ length: 4 }, () => this.random.uint32().toString(16).padStart(8, '0')).join('');
    await this.agents.request(agent, { allowRange: { ...payload, token, ttlMs } }, REQUEST_TIMEOUT_US);
    return { rangeUrl, token };
  }
}
