import { createHash } from 'node:crypto';
import type { P4Info } from '../../wire/p4runtime/p4info-messages.ts';
import { messageCodec } from '../../wire/proto.ts';

const p4InfoCodec = messageCodec<P4Info>('p4.config.v1.P4Info');

/** A program as a switch takes it. */
export interface Pipeline {
  readonly p4info: P4Info;
  /** What the target's compiler made: for bmv2 and the embedded switch its JSON. */
  readonly deviceConfig: Uint8Array;
  /** Identifies exactly these two: a switch that reports it runs this program already. */
  readonly cookie: bigint;
}

/** The cookie is the first 8 bytes of a SHA-256 over the P4Info's and the device config's lengths and bytes. */
export function createPipeline(p4info: P4Info, deviceConfig: Uint8Array): Pipeline {
  const hash = createHash('sha256');
  for (const part of [p4InfoCodec.encode(p4info), deviceConfig]) {
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(part.length));
    hash.update(length).update(part);
  }
  return { p4info, deviceConfig, cookie: hash.digest().readBigUInt64BE(0) };
}
