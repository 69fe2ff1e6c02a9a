import { readFileSync } from 'node:fs';
import { DdfError } from '../base/errors.ts';
import { FABRIC_UDP_PORT } from '../p4/build/constants.ts';
import { type StartSend, TransferState } from '../wire/agent/messages.ts';
import { FABRIC_HEADER_BYTES } from '../wire/fabric/header.ts';
import { ETHERNET_HEADER_BYTES } from '../wire/packet/ethernet.ts';
import { UDP_FRAME_OVERHEAD_BYTES } from '../wire/packet/udp.ts';
import type { AgentCore } from './agent.ts';
import { toAgentError } from './io/attachment.ts';
import { TransferDriver } from './io/transfer-driver.ts';
import type { PayloadReader } from './protocol/block-cache.ts';
import { ProbedSender, type ProbedSenderEvent } from './protocol/probed-sender.ts';
import { rejectionFields } from './protocol/rejections.ts';
import type { ReportedTransfer, Status } from './status-reporter.ts';
import { type FileSource, openFileSource } from './store/files.ts';
import type { StoredPayload } from './store/store.ts';

/** One transfer that this Memory Node sends: the state machine, its file, and what the controller hears of it. */
export class Outgoing implements ReportedTransfer {
  readonly request: StartSend;
  private readonly core: AgentCore;
  private readonly file: FileSource;
  private readonly machine: ProbedSender;
  private readonly driver: TransferDriver<ProbedSenderEvent>;
  private readonly unpin: () => void;
  private current: TransferState = TransferState.SENDING;
  private failure: DdfError | undefined;
  /** What the tree carries; 0 before that is known. */
  private pathSegmentBytes = 0;

  /** @throws DdfError of the store or for sizes and rates that make no sense; nothing is held then */
  constructor(core: AgentCore, request: StartSend, stored: StoredPayload) {
    const { scheduler, pacing } = core.options;
    const { label } = request;
    const { objectId, version, baseVersion, sizeBytes } = stored.manifest;
    const nowUs = scheduler.nowUs();
    this.core = core;
    this.request = request;
    const manifest = readFileSync(stored.manifestPath);
    this.file = openFileSource(stored.dataPath);
    try {
      this.machine = new ProbedSender(nowUs, {
        transfer: { label, objectId, objectVersion: version, baseVersion },
        manifestBytes: manifest.length,
        payloadBytes: sizeBytes,
        segmentBytes: request.segmentBytes,
        reader: streamReader(manifest, this.file),
        rateFloorBitsPerSecond: Number(request.rateFloorBitsPerSecond),
        rateCeilingBitsPerSecond: Number(request.rateCeilingBitsPerSecond),
        rttUs: request.rttUs,
        stripe: { index: request.stripeIndex, count: Math.max(1, request.stripeCount) },
        firstBlock: request.firstBlock,
        expectedLoss: request.expectedLossPpm / 1e6,
        expectDone: request.expectDone,
        probeReceivers: request.probeReceivers,
        largestSegmentBytes: largestSegment(core.options.host.mtuBytes),
        ...(pacing === undefined ? {} : { burstUs: pacing.burstUs }),
        ...(request.deadlineMs === 0 ? {} : { deadlineUs: nowUs + request.deadlineMs * 1000 }),
      });
    } catch (error) {
      this.file.close();
      throw error;
    }
    this.unpin = core.store.pin(stored.manifest);
    this.driver = new TransferDriver({
      machine: this.machine,
      scheduler,
      send: (datagram) => {
        core.send(request.destinationIp, FABRIC_UDP_PORT, datagram);
        core.statuses.changed(label);
      },
      hasRoom: () => core.hasRoom,
      ...(pacing === undefined ? {} : { leastWaitUs: pacing.leastWaitUs }),
      onEvent: (event) => this.handle(event),
      onFailure: (error) => this.fail(error),
    });
    core.statuses.begin(label, this);
    this.driver.pump();
  }

  get state(): TransferState {
    return this.current;
  }

  get isOver(): boolean {
    return this.state === TransferState.CLOSED || this.state === TransferState.FAILED;
  }

  handlePacket(datagram: Uint8Array): void {
    this.driver.handlePacket(datagram);
    this.core.statuses.changed(this.request.label);
  }

  /** @throws DdfError INVALID_OPTION */
  setRate(floorBitsPerSecond: bigint, ceilingBitsPerSecond: bigint): void {
    const nowUs = this.core.options.scheduler.nowUs();
    this.machine.setRateLimits(nowUs, Number(floorBitsPerSecond), Number(ceilingBitsPerSecond));
    this.driver.pump();
  }

  /** Tells the tree that nothing more comes; CLOSED follows when that was said. */
  complete(): void {
    if (this.isOver) return;
    this.machine.close(this.core.options.scheduler.nowUs());
    this.driver.pump();
  }

  /** Stops in the middle without a word to the tree. */
  abort(): void {
    this.finish(TransferState.CLOSED);
  }

  private handle(event: ProbedSenderEvent): void {
    switch (event.type) {
      case 'path':
        this.handlePath(event.segmentBytes, event.silent);
        break;
      case 'pathFailed':
        this.fail(event.error);
        break;
      case 'sent':
        this.current = TransferState.SENT;
        this.core.statuses.changed(this.request.label);
        break;
      case 'closed':
        this.finish(TransferState.CLOSED);
        break;
      case 'done':
        break;
    }
  }

  private handlePath(pathSegmentBytes: number, silent: number): void {
    const { label, segmentBytes } = this.request;
    this.pathSegmentBytes = pathSegmentBytes;
    if (silent > 0) this.core.options.logger.warn({ label, silent }, 'receivers have not answered probes');
    if (pathSegmentBytes === segmentBytes) return;
    this.fail(
      new DdfError('PATH_TOO_NARROW', `segments of ${segmentBytes} B do not pass, those of ${pathSegmentBytes} B do`, {
        where: `tree of transfer ${label}`,
        remedy: 'Give every link of the tree the MTU that the topology says, or the topology that of the links.',
        recoverable: true,
      }),
    );
  }

  private fail(error: DdfError): void {
    this.core.options.logger.error({ error, label: this.request.label }, 'sending failed');
    this.failure = error;
    this.finish(TransferState.FAILED);
  }

  private finish(state: TransferState): void {
    if (this.isOver) return;
    this.current = state;
    this.driver.stop();
    this.file.close();
    this.unpin();
    this.core.statuses.end(this.request.label);
  }

  status(): Status {
    const { counters } = this.machine;
    return {
      label: this.request.label,
      state: this.state,
      bytesDone: BigInt(this.machine.bytesDone),
      pathSegmentBytes: this.pathSegmentBytes,
      error: this.failure === undefined ? undefined : toAgentError(this.failure),
      sender: {
        dataPackets: BigInt(counters.dataPackets),
        repairPackets: BigInt(counters.repairPackets),
        parityAheadPackets: BigInt(counters.parityAheadPackets),
        syncPackets: BigInt(counters.syncPackets),
        frameBytes: BigInt(counters.frameBytes),
        nacksReceived: BigInt(counters.nacksReceived),
        nacksIgnored: BigInt(counters.nacksIgnored),
        reportsReceived: BigInt(counters.reportsReceived),
        doneReceived: counters.doneReceived,
        rateBitsPerSecond: BigInt(Math.round(this.machine.rateBitsPerSecond(this.core.options.scheduler.nowUs()))),
        rttUs: counters.rttUs,
        probePackets: BigInt(counters.probePackets),
        probeAnswers: BigInt(counters.probeAnswers),
        donesIgnored: BigInt(counters.donesIgnored),
        ...rejectionFields(counters),
      },
    };
  }
}

/** What fits into IP packets of this many bytes. */
function largestSegment(mtuBytes: number): number {
  return mtuBytes - (UDP_FRAME_OVERHEAD_BYTES - ETHERNET_HEADER_BYTES) - FABRIC_HEADER_BYTES;
}

/** The stream of a transfer: the manifest, then the payload; the sender keeps blocks, so that each is read once. */
function streamReader(manifest: Uint8Array, file: FileSource): PayloadReader {
  return {
    read(streamOffset, length) {
      if (streamOffset < manifest.length) return manifest.subarray(streamOffset, streamOffset + length);
      const bytes = new Uint8Array(length);
      file.readAt(streamOffset - manifest.length, bytes);
      return bytes;
    },
  };
}
