import type { Frame } from '../port.ts';
import { VNET_GSO_ECN, VNET_GSO_TCPV4, VNET_GSO_TCPV6, VNET_GSO_UDP_L4 } from './abi.ts';
import { fold, onesSum, writeChecksum } from './checksum.ts';

const ETHERNET_BYTES = 14;
const IPV6_BYTES = 40;
const UDP_BYTES = 8;
const PROTOCOL_TCP = 6;
const PROTOCOL_UDP = 17;
const TCP_FIN_PSH = 0x09;
const TCP_CWR = 0x80;

/**
 * Cuts a packet that a local sender left whole for its NIC (GSO: up to 64 KiB of TCP, or several UDP datagrams in one) into the frames that
 * the NIC would have sent, with lengths, sequence numbers, flags and checksums of their own.
 *
 * Returns `undefined` for what is no such packet: another kind, or headers that do not fit.
 *
 * @param kind gso_type of the virtio-net header
 * @param segmentBytes its gso_size: payload of every frame but the last
 * @param transport its csum_start: offset of the TCP or UDP header
 */
export function segmentFrame(frame: Frame, kind: number, segmentBytes: number, transport: number): Frame[] | undefined {
  const type = kind & ~VNET_GSO_ECN;
  const isUdp = type === VNET_GSO_UDP_L4;
  if (!isUdp && type !== VNET_GSO_TCPV4 && type !== VNET_GSO_TCPV6) return undefined;
  const network = networkOffset(frame);
  const isIpv4 = frame[network]! >>> 4 === 4;
  const transportBytes = isUdp ? UDP_BYTES : (frame[transport + 12]! >>> 4) * 4;
  const payload = transport + transportBytes;
  const shortest = network + (isIpv4 ? 20 : IPV6_BYTES);
  if (segmentBytes === 0 || transport < shortest || !(transportBytes >= UDP_BYTES) || payload >= frame.length)
    return undefined;

  const count = Math.ceil((frame.length - payload) / segmentBytes);
  return Array.from({ length: count }, (_, i) => {
    const start = payload + i * segmentBytes;
    const end = Math.min(start + segmentBytes, frame.length);
    const segment = new Uint8Array(payload + end - start);
    segment.set(frame.subarray(0, payload));
    segment.set(frame.subarray(start, end), payload);
    const view = new DataView(segment.buffer);
    if (isIpv4) {
      view.setUint16(network + 2, segment.length - network);
      view.setUint16(network + 4, view.getUint16(network + 4) + i);
      view.setUint16(network + 10, 0);
      writeChecksum(segment, network + 10, onesSum(segment, network, network + (segment[network]! & 0xf) * 4));
    } else {
      view.setUint16(network + 4, segment.length - network - IPV6_BYTES);
    }
    if (isUdp) {
      view.setUint16(transport + 4, segment.length - transport);
    } else {
      view.setUint32(transport + 4, view.getUint32(transport + 4) + i * segmentBytes);
      if (i > 0) segment[transport + 13]! &= ~TCP_CWR;
      if (i < count - 1) segment[transport + 13]! &= ~TCP_FIN_PSH;
    }
    const field = transport + (isUdp ? 6 : 16);
    view.setUint16(field, 0);
    const length = segment.length - transport;
    const pseudoHeader =
      (isIpv4 ? onesSum(segment, network + 12, network + 20) : onesSum(segment, network + 8, network + 40)) +
      (isUdp ? PROTOCOL_UDP : PROTOCOL_TCP) +
      length;
    writeChecksum(segment, field, fold(pseudoHeader + onesSum(segment, transport, segment.length)));
    return segment;
  });
}

/** Behind the Ethernet header and the VLAN tags that are still in the frame. */
function networkOffset(frame: Frame): number {
  let offset = ETHERNET_BYTES;
  for (;;) {
    const etherType = (frame[offset - 2]! << 8) | frame[offset - 1]!;
    if (etherType !== 0x8100 && etherType !== 0x88a8) return offset;
    offset += 4;
  }
}
