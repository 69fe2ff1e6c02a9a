import type { Topology } from './types.ts';

/** EtherType, object id and version, ingress switch, class, hops: links between switches carry it on top of what hosts send. */
const OBJECT_TAG_BYTES = 18;

/** MTU of the links between hosts and switches, and of those between switches, bytes: what stands behind the Ethernet header of a frame at most. */
export function linkMtus({ mtuBytes }: Pick<Topology, 'mtuBytes'>): { readonly host: number; readonly core: number } {
  return { host: mtuBytes, core: mtuBytes + OBJECT_TAG_BYTES };
}
