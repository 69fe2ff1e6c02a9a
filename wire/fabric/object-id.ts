/**
 * Object ids are 64 bits: tenant (16) | serial (48). On the packet path they are two unsigned 32-bit numbers, since a bigint per packet
 * is an allocation per packet; everywhere else they are a bigint.
 */
export interface ObjectIdHalves {
  readonly objectIdHigh: number;
  readonly objectIdLow: number;
}

export function splitObjectId(objectId: bigint): ObjectIdHalves {
  return { objectIdHigh: Number((objectId >> 32n) & 0xffff_ffffn), objectIdLow: Number(objectId & 0xffff_ffffn) };
}

export function joinObjectId(halves: ObjectIdHalves): bigint {
  return (BigInt(halves.objectIdHigh) << 32n) | BigInt(halves.objectIdLow);
}
