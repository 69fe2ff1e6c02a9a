import type { PayloadId } from '../../objects/ids.ts';
import { FABRIC_SOURCE_SYMBOLS } from '../../p4/build/constants.ts';
import type { Holder, Payload, Stripe } from '../../wire/agent/messages.ts';
import type { MessageInput } from '../../wire/proto.ts';
import type { AttachedAgent } from '../agents/hello.ts';
import type { PayloadRecord } from '../directory/types.ts';
import { floorOf, roundTripUs } from '../planner/rates.ts';
import type { ExecutablePlan } from '../planner/types.ts';
import { isInstalled, type Rollout, stripesOf, type TransferProgress } from '../rollout/types.ts';
import type { ExecutionContext } from './context.ts';

const REQUEST_TIMEOUT_US = 10_000_000;
/** To agree to receive, a server may have to hash its base, or what an earlier run has left. */
const HASHING_BYTES_PER_SECOND = 100e6;
const MAX_HOLDERS = 4;

export interface SendOptions {
  /** Payload bits per second. */
  readonly ceiling: number;
  /** Of those that are ready. */
  readonly receivers: number;
  /** Payload bytes that another sender has sent of the stripe: at least so many. */
  readonly bytesSent: number;
}

/** What a rollout asks of agents about its payloads. Everything is refused as the agent does, or as AGENT_UNREACHABLE. */
export class TransferRequests {
  private readonly context: ExecutionContext;
  private readonly plan: ExecutablePlan;
  private readonly rolloutId: string;

  constructor(context: ExecutionContext, plan: ExecutablePlan, rolloutId: string) {
    this.context = context;
    this.plan = plan;
    this.rolloutId = rolloutId;
  }

  /**
   * @param receive    label of the payload's first stripe, or of a lane
   * @param deadlineMs from now on; what is missing then is read by unicast
   * @param limitMs    until when ranges may be read
   */
  async prepareReceive(
    rollout: Rollout,
    server: string,
    receive: number,
    deadlineMs: number,
    limitMs: number,
  ): Promise<void> {
    const { agents, segmentBytes, eliminationUs } = this.context;
    const stripes = stripesOf(rollout, receive);
    const base = stripes[0]?.base ?? rollout.lanes.find((lane) => lane.label === receive)!.base;
    const payload = this.payload(base);
    const bytes = Number(payload.sizeBytes) + (base === 0 ? 0 : this.plan.version.sizeBytes);
    await agents.request(
      server,
      {
        prepareReceive: {
          label: receive,
          payload,
          segmentBytes: stripes[0]?.segmentBytes ?? segmentBytes,
          stripes: this.stripes(stripes),
          targetRootSha256: this.plan.version.root,
          holders: await this.holders(server, payload, limitMs),
          deadlineMs: stripes.length === 0 ? 0 : deadlineMs,
          eliminationUs,
        },
      },
      REQUEST_TIMEOUT_US + Math.ceil((1e6 * bytes) / HASHING_BYTES_PER_SECOND),
    );
  }

  async updateReceive(rollout: Rollout, server: string, receive: number): Promise<void> {
    const updateReceive = { label: receive, stripes: this.stripes(stripesOf(rollout, receive)) };
    await this.context.agents.request(server, { updateReceive }, REQUEST_TIMEOUT_US);
  }

  async startSend(transfer: TransferProgress, options: SendOptions, deadlineMs: number): Promise<void> {
    const { graph, agents, losses } = this.context;
    const { label, tree, segmentBytes, stripe, base } = transfer;
    const payload = this.payload(base);
    const { source } = tree;
    await agents.request(
      source,
      {
        startSend: {
          label,
          payload,
          segmentBytes,
          // Switches go by the label and rewrite every copy; the first one is the source's gateway, whose MAC address it has.
          destinationIp: graph.switch(graph.host(source).switch).ip,
          rateFloorBitsPerSecond: BigInt(floorOf(options.ceiling)),
          rateCeilingBitsPerSecond: BigInt(options.ceiling),
          rttUs: roundTripUs(graph, tree, segmentBytes),
          firstBlock: firstBlockAfter(options.bytesSent, payload.manifestBytes, segmentBytes),
          deadlineMs,
          expectDone: tree.doneUsable,
          stripeIndex: stripe.index,
          stripeCount: stripe.count,
          expectedLossPpm: losses.expectedPpm(tree.receivers),
          probeReceivers: options.receivers,
        },
      },
      REQUEST_TIMEOUT_US,
    );
  }

  async activate(server: string): Promise<void> {
    const { directory, agents } = this.context;
    const { objectId } = this.plan;
    const { version } = this.plan.version;
    await agents.request(server, { activateVersion: { objectId, version } }, REQUEST_TIMEOUT_US);
    directory.recordActive(server, objectId, version);
  }

  endTransfer(agent: string, label: number, complete: boolean): void {
    // Who does not hear it ends by its own deadline, or hears it when it next reports on the label.
    this.context.agents.request(agent, { endTransfer: { label, complete } }, REQUEST_TIMEOUT_US).catch(() => {});
  }

  /** What a payload is, as agents are told. */
  private payload(base: number): Payload {
    const { objectId, version, sizeBytes, manifestBytes, manifestSha256 } = this.record(base);
    return { objectId, version, baseVersion: base, sizeBytes: BigInt(sizeBytes), manifestBytes, manifestSha256 };
  }

  private record(base: number): PayloadRecord {
    return this.context.directory.findPayload(this.plan.objectId, this.plan.version.version, base)!;
  }

  /** Those that are sent or going to be. */
  private stripes(transfers: readonly TransferProgress[]): MessageInput<Stripe>[] {
    const { graph } = this.context;
    return transfers
      .filter((transfer) => isInstalled(transfer) && transfer.phase !== 'closing')
      .map(({ label, tree, stripe, segmentBytes }) => ({
        label,
        index: stripe.index,
        count: stripe.count,
        senderIp: graph.host(tree.source).ip,
        rttUs: roundTripUs(graph, tree, segmentBytes),
        sendDone: tree.doneUsable,
      }));
  }

  /** Attached agents that serve ranges of the payload: servers first, the nearest ones, so that the origin is asked last. */
  private async holders(server: string, payload: Payload, ttlMs: number): Promise<Holder[]> {
    const { directory, agents, graph, tokens } = this.context;
    const { objectId, version, baseVersion } = payload;
    const id: PayloadId = { objectId, version, baseVersion };
    const nodes = this.record(baseVersion).memoryNodes;
    const distances = graph.distancesTo(graph.host(server).switch);
    const distance = (agent: string): number => distances.get(graph.host(agent).switch) ?? Number.POSITIVE_INFINITY;
    const candidates = directory
      .holders(objectId, version)
      .map((holding) => agents.find(holding.agent))
      .filter((agent) => agent !== undefined && agent.name !== server)
      .filter((agent): agent is AttachedAgent =>
        agent!.kind === 'memory-node' ? nodes.includes(agent!.name) : baseVersion === 0,
      );
    const near = (kind: AttachedAgent['kind']): string[] =>
      candidates
        .filter((agent) => agent.kind === kind)
        .map((agent) => agent.name)
        .sort((a, b) => distance(a) - distance(b));
    // Every server starts at another one of the holders, or all of them would read from the same.
    const servers = rotate(near('gpu-server'), graph.host(server).port).slice(0, MAX_HOLDERS / 2);
    const chosen = [...servers, ...near('memory-node')].slice(0, MAX_HOLDERS);
    const granted = await Promise.all(chosen.map((agent) => tokens.grant(this.rolloutId, agent, id, ttlMs)));
    return granted.filter((holder) => holder !== undefined);
  }
}

/** The block that the next sender of a stripe begins with: receivers ask for what they miss of the blocks before it. */
function firstBlockAfter(bytesSent: number, manifestBytes: number, segmentBytes: number): number {
  if (bytesSent === 0) return 0;
  const blockBytes = FABRIC_SOURCE_SYMBOLS * segmentBytes;
  return Math.ceil(manifestBytes / blockBytes) + Math.floor(bytesSent / blockBytes);
}

function rotate<T>(items: readonly T[], by: number): T[] {
  const start = items.length === 0 ? 0 : by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}
