import { FABRIC_FLAG_LAST_BLOCK } from '../../p4/build/constants.ts';
import type { FabricHeader, FabricPacket } from '../../wire/fabric/header.ts';
import { splitObjectId } from '../../wire/fabric/object-id.ts';
import type { StreamLayout } from './layout.ts';
import type { Rejection } from './rejections.ts';

/** What is being brought to its receivers. */
export interface PayloadIdentity {
  readonly objectId: bigint;
  readonly objectVersion: number;
  /** 0: the payload is a full image. */
  readonly baseVersion: number;
}

/** What every packet of a transfer says it is part of. */
export interface TransferIdentity extends PayloadIdentity {
  readonly label: number;
}

/** Needs above this are read by unicast: a receiver does not ask for more, a sender does not answer more. */
export const MAX_NEED = 16;

/**
 * How long a receiver waits before it answers a probe, so that the answers of many do not meet, and the sender knows how much of an answer's time
 * that was.
 * @param windowUs what the probe says
 * @param number   the receiver's own, 32 bits at random; the answer says it
 */
export function probeWaitUs(windowUs: number, number: number): number {
  return Math.floor((windowUs * number) / 2 ** 32);
}

/** Makes and recognises the headers of one transfer. */
export class HeaderTemplate {
  private readonly template: FabricHeader;
  private readonly layout: StreamLayout;

  constructor(transfer: TransferIdentity, layout: StreamLayout) {
    this.layout = layout;
    this.template = {
      type: 0,
      flags: 0,
      label: transfer.label,
      ...splitObjectId(transfer.objectId),
      objectVersion: transfer.objectVersion,
      baseVersion: transfer.baseVersion,
      block: 0,
      symbol: 0,
      sourceSymbols: 0,
      need: 0,
      epoch: 0,
    };
  }

  /** A header that is about one block. */
  forBlock(type: number, block: number, symbol: number, need: number): FabricHeader {
    const flags = block === this.layout.blocks - 1 ? FABRIC_FLAG_LAST_BLOCK : 0;
    return { ...this.template, type, flags, block, symbol, sourceSymbols: this.layout.sourceSymbols(block), need };
  }

  /** A header that is about the whole transfer. */
  forEpoch(type: number, epoch: number, fields: { flags?: number; block?: number; need?: number } = {}): FabricHeader {
    return { ...this.template, type, epoch, ...fields };
  }

  /** Why a packet does not belong to this transfer or, if it is about a block, not to a block as the layout has it. */
  mismatch(packet: FabricPacket, aboutBlock: boolean): Rejection | undefined {
    const own = this.template;
    if (packet.label !== own.label) return 'label';
    const isOfObject =
      packet.objectIdHigh === own.objectIdHigh &&
      packet.objectIdLow === own.objectIdLow &&
      packet.objectVersion === own.objectVersion &&
      packet.baseVersion === own.baseVersion;
    if (!isOfObject) return 'object';
    if (!aboutBlock) return undefined;
    if (packet.block >= this.layout.blocks) return 'block';
    return packet.sourceSymbols === this.layout.sourceSymbols(packet.block) ? undefined : 'symbol';
  }
}
