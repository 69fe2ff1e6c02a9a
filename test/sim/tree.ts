import type { SenderOptions } from '../../agents/protocol/sender.ts';
import { VirtualScheduler } from '../../base/clock.ts';
import { createRandom, type Random } from '../../base/random.ts';
import {
  FABRIC_MARK_ANEW,
  FABRIC_TYPE_DONE,
  FABRIC_TYPE_NACK,
  FABRIC_TYPE_REPAIR,
  FABRIC_TYPE_REPORT,
} from '../../p4/build/constants.ts';
import { readUint32 } from '../../wire/packet/integers.ts';
import {
  type Content,
  type Deliver,
  makeContent,
  makePipe,
  type PipeOptions,
  ReceiverHost,
  type ReceiverSettings,
  SenderHost,
  TRANSFER,
} from '../agents/protocol/harness.ts';
import { EliminationModel, WHOLE_TREE } from './elimination-model.ts';

/** A tree of modelled switches between the real sender and real receivers: source leaf, spine, leaves, hosts. */

const TICK_US = 16;

export interface TreeOptions {
  readonly seed: string;
  readonly leaves: number;
  readonly receiversPerLeaf: number;
  readonly payloadBytes: number;
  readonly segmentBytes?: number;
  /** Of each direction of every host link, the sender's too. */
  readonly hostLink?: Partial<PipeOptions>;
  readonly coreLink?: Partial<PipeOptions>;
  readonly slots?: number;
  readonly eliminationUs?: number;
  readonly packetSpacingUs?: number;
  readonly sender?: Partial<SenderOptions>;
  readonly receiver?: Partial<ReceiverSettings>;
  /** Sees every decision of every switch. */
  readonly observer?: (observation: Observation) => void;
}

export interface Observation {
  readonly at: SwitchNode;
  readonly block: number;
  readonly nowTicks: number;
  /** What the block's slot was before. */
  readonly standing: { readonly mine: boolean; readonly old: boolean };
  readonly nack?: { readonly need: number; readonly port: number; readonly forwarded: boolean; readonly anew: boolean };
  readonly repair?: { readonly mask: number };
}

export class SwitchNode {
  readonly name: string;
  readonly model: EliminationModel;
  /** Towards the receivers, by the number of the port. */
  readonly down: Deliver[] = [];
  up: Deliver = () => {};
  nacksUp = 0;
  private readonly scheduler: VirtualScheduler;
  private readonly clockOffset: number;
  private readonly observer: TreeOptions['observer'];
  private portsDone = 0;
  private doneEpoch = -1;
  private reportEpoch = -1;
  private worstLevel = 0;

  constructor(
    name: string,
    scheduler: VirtualScheduler,
    model: EliminationModel,
    clockOffset: number,
    observer: TreeOptions['observer'],
  ) {
    this.name = name;
    this.scheduler = scheduler;
    this.model = model;
    this.clockOffset = clockOffset;
    this.observer = observer;
  }

  nowTicks(): number {
    return (Math.floor(this.scheduler.nowUs() / TICK_US) + this.clockOffset) >>> 0;
  }

  restart(): void {
    this.model.restart();
    this.portsDone = 0;
    this.doneEpoch = -1;
    this.reportEpoch = -1;
  }

  fromUpstream(datagram: Uint8Array): void {
    let mask = WHOLE_TREE;
    if (typeOf(datagram) === FABRIC_TYPE_REPAIR) {
      const block = readUint32(datagram, 24);
      const nowTicks = this.nowTicks();
      const standing = this.model.standing(TRANSFER.label, block, nowTicks);
      mask = this.model.handleRepair(TRANSFER.label, block, nowTicks);
      this.observer?.({ at: this, block, nowTicks, standing, repair: { mask } });
    }
    for (let port = 0; port < this.down.length; port++) if (((mask >>> port) & 1) === 1) this.down[port](datagram);
  }

  fromPort(port: number, datagram: Uint8Array): void {
    const portBit = 1 << port;
    switch (typeOf(datagram)) {
      case FABRIC_TYPE_NACK: {
        const block = readUint32(datagram, 24);
        const need = datagram[30];
        const nowTicks = this.nowTicks();
        const standing = this.model.standing(TRANSFER.label, block, nowTicks);
        const verdict = this.model.handleNack(TRANSFER.label, block, need, portBit, nowTicks);
        this.observer?.({ at: this, block, nowTicks, standing, nack: { need, port, ...verdict } });
        if (!verdict.forwarded) return;
        datagram[36] = verdict.anew ? FABRIC_MARK_ANEW : 0;
        this.nacksUp++;
        this.up(datagram);
        return;
      }
      case FABRIC_TYPE_DONE: {
        this.portsDone |= portBit;
        if (this.portsDone !== 2 ** this.down.length - 1 || this.doneEpoch === datagram[31]) return;
        this.doneEpoch = datagram[31];
        this.up(datagram);
        return;
      }
      case FABRIC_TYPE_REPORT: {
        if (this.reportEpoch === datagram[31] && datagram[30] <= this.worstLevel) return;
        this.reportEpoch = datagram[31];
        this.worstLevel = datagram[30];
        this.up(datagram);
        return;
      }
      default:
    }
  }
}

export class Tree {
  readonly scheduler = new VirtualScheduler();
  readonly content: Content;
  readonly sender: SenderHost;
  readonly receivers: ReceiverHost[] = [];
  readonly sourceLeaf: SwitchNode;
  readonly switches: SwitchNode[] = [];
  readonly eliminationUs: number;
  private readonly random: Random;
  private readonly options: TreeOptions;

  constructor(options: TreeOptions) {
    this.options = options;
    this.random = createRandom(options.seed);
    this.eliminationUs = options.eliminationUs ?? 10_000;
    const segmentBytes = options.segmentBytes ?? 64;
    const manifestBytes = 44;
    this.content = makeContent(this.random.fork('content'), manifestBytes, options.payloadBytes);

    this.sourceLeaf = this.addSwitch('source leaf');
    const spine = this.addSwitch('spine');
    this.connect(this.sourceLeaf, spine);

    const layout = { transfer: TRANSFER, manifestBytes, payloadBytes: options.payloadBytes, segmentBytes };
    const spacingUs = options.packetSpacingUs ?? 66;
    const rate = ((segmentBytes + 82) * 8e6) / spacingUs;
    const rttUs = 200;
    const toLeaf = this.pipe('sender up', options.hostLink, (datagram) => this.sourceLeaf.fromUpstream(datagram));
    this.sender = new SenderHost(
      this.scheduler,
      {
        ...layout,
        reader: { read: (offset, length) => this.content.stream.subarray(offset, offset + length) },
        rateFloorBitsPerSecond: rate / 10,
        rateCeilingBitsPerSecond: rate,
        rttUs,
        expectDone: true,
        ...options.sender,
      },
      toLeaf,
    );
    this.sourceLeaf.up = this.pipe('sender down', options.hostLink, (datagram) => this.sender.receive(datagram));

    for (let l = 0; l < options.leaves; l++) {
      const leaf = this.addSwitch(`leaf ${l}`);
      this.connect(spine, leaf);
      for (let r = 0; r < options.receiversPerLeaf; r++) {
        const name = `receiver ${l}.${r}`;
        const up = this.pipe(`${name} up`, options.hostLink, (datagram) => leaf.fromPort(r, datagram));
        const host = new ReceiverHost(
          this.scheduler,
          this.content,
          {
            ...layout,
            random: this.random.fork(name),
            rttUs,
            eliminationUs: this.eliminationUs,
            sendDone: true,
            ...options.receiver,
          },
          up,
        );
        leaf.down.push(this.pipe(`${name} down`, options.hostLink, (datagram) => host.receive(datagram)));
        this.receivers.push(host);
      }
    }
  }

  /** @returns whether every receiver completed */
  run(limitUs = 60_000_000): boolean {
    this.sender.pump();
    for (const receiver of this.receivers) receiver.pump();
    return this.scheduler.runWhile(() => this.receivers.every((receiver) => receiver.complete), limitUs);
  }

  private addSwitch(name: string): SwitchNode {
    const { slots = 65536, observer } = this.options;
    const model = new EliminationModel(slots, {
      eliminationTicks: Math.floor(this.eliminationUs / TICK_US),
      staleTicks: 200_000 / TICK_US,
      graceTicks: Math.floor(10_000 / TICK_US),
    });
    // Clocks of switches have nothing to do with each other; many of them wrap during a run.
    const offset = this.random.chance(0.5) ? this.random.uint32() : 0xffff_ffff - this.random.below(20_000);
    const node = new SwitchNode(name, this.scheduler, model, offset, observer);
    this.switches.push(node);
    return node;
  }

  private connect(upper: SwitchNode, lower: SwitchNode): void {
    const port = upper.down.length;
    upper.down.push(this.pipe(`${lower.name} down`, this.options.coreLink, (datagram) => lower.fromUpstream(datagram)));
    lower.up = this.pipe(`${lower.name} up`, this.options.coreLink, (datagram) => upper.fromPort(port, datagram));
  }

  private pipe(name: string, options: Partial<PipeOptions> | undefined, deliver: Deliver): Deliver {
    return makePipe(this.scheduler, this.random.fork(name), { delayUs: 20, ...options }, deliver);
  }
}

function typeOf(datagram: Uint8Array): number {
  return datagram[0] & 15;
}
