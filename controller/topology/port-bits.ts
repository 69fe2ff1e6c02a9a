/** Ports that masks in the switches tell apart: the width of `bit` and of `tree_mask` in p4/transfers.p4. */
const MASK_BITS = 32;

/**
 * Numbers a switch's ports for masks: the first 32 in ascending order get a bit of their own, the ones after share them in turn. Shared bits keep
 * repair right, a little wider; only DONE cannot count on them (see {@link shareBits}).
 *
 * @returns a one-hot mask (unsigned 32 bits) for every port
 */
export function assignPortBits(ports: readonly number[]): ReadonlyMap<number, number> {
  const ascending = [...new Set(ports)].sort((a, b) => a - b);
  return new Map(ascending.map((port, index) => [port, (1 << (index % MASK_BITS)) >>> 0]));
}

/** Whether two of the ports have the same bit. */
export function shareBits(ports: readonly number[], bits: ReadonlyMap<number, number>): boolean {
  return new Set(ports.map((port) => bits.get(port))).size < new Set(ports).size;
}

/** The union of the ports' bits. Every port is one that {@link assignPortBits} was given. */
export function maskOf(ports: readonly number[], bits: ReadonlyMap<number, number>): number {
  return ports.reduce((mask, port) => mask | bits.get(port)!, 0) >>> 0;
}
