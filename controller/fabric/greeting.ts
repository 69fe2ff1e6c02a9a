import { ETHERTYPE_ARP } from '../../p4/build/constants.ts';
import type { HostNode, SwitchNode } from '../../topologies/types.ts';
import { parseIpv4, parseMac } from '../../wire/packet/addresses.ts';
import { ARP_BYTES, ARP_REQUEST, emitArp } from '../../wire/packet/arp.ts';
import { ETHERNET_HEADER_BYTES, emitEthernet } from '../../wire/packet/ethernet.ts';

/**
 * An ARP request of a switch to a host behind it. Who is asked learns who asks (RFC 826, "Packet Reception"): so a host knows its gateway before
 * it sends the first packets of a transfer, which come faster than an answer of ours and would be dropped meanwhile.
 */
export function arpGreeting(gateway: SwitchNode, host: HostNode): Uint8Array {
  const frame = new Uint8Array(ETHERNET_HEADER_BYTES + ARP_BYTES);
  const [own, other] = [parseMac(gateway.mac)!, parseMac(host.mac)!];
  emitEthernet(frame, 0, { destination: other, source: own, etherType: ETHERTYPE_ARP });
  emitArp(frame, ETHERNET_HEADER_BYTES, {
    operation: ARP_REQUEST,
    senderMac: own,
    senderIp: parseIpv4(gateway.ip)!,
    targetMac: 0,
    targetIp: parseIpv4(host.ip)!,
  });
  return frame;
}
