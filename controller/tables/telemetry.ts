/** p4/telemetry.p4: names and cells of the counters. */

/** Its cells are the drop reasons: `DROP_REASON_NAMES` of p4/build/constants.ts names them. */
export const DROP_COUNTER = 'drop_counter';
export const INGRESS_PORT_COUNTER = 'ingress_port_counter';
export const EGRESS_PORT_COUNTER = 'egress_port_counter';
export const TRANSFER_EGRESS_COUNTER = 'transfer_egress_counter';

/**
 * Cell of the per-port counters. Bytes are counted at the length that a packet came in with, also on its way out.
 * @param tagged whether packets came in with an object tag
 * @param kind a fabric type (1..8) or one of the KIND_ constants
 */
export function portCounterCell(port: number, tagged: boolean, kind: number): number {
  return (port << 5) | (tagged ? 16 : 0) | kind;
}
