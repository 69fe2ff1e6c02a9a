/**
 * Numbers and layouts of Linux's packet sockets on 64-bit machines (linux/if_packet.h, if_ether.h, if.h, ethtool.h, virtio_net.h, rtnetlink.h).
 * Integers are in the machine's byte order, which is also that of typed arrays.
 */
export const AF_NETLINK = 16;
export const AF_PACKET = 17;
export const SOCK_RAW = 3;
export const ETH_P_ALL = 3;

export const SO_ATTACH_FILTER = 26;

export const SOL_PACKET = 263;
export const PACKET_ADD_MEMBERSHIP = 1;
export const PACKET_RX_RING = 5;
export const PACKET_STATISTICS = 6;
export const PACKET_COPY_THRESH = 7;
export const PACKET_VERSION = 10;
export const PACKET_VNET_HDR = 15;
export const PACKET_QDISC_BYPASS = 20;
export const PACKET_IGNORE_OUTGOING = 23;
export const PACKET_MR_PROMISC = 1;
export const TPACKET_V2 = 1;

/** Status bits of a slot of the receive ring. */
export const TP_STATUS_KERNEL = 0;
export const TP_STATUS_USER = 1;
/** The frame did not fit into the slot; it is whole in the socket's queue. */
export const TP_STATUS_COPY = 2;
export const TP_STATUS_VLAN_VALID = 1 << 4;
export const TP_STATUS_VLAN_TPID_VALID = 1 << 6;

/** struct tpacket2_hdr, aligned to 16, and the sockaddr_ll behind it: what a slot begins with. */
export const SLOT_HEADER_BYTES = 32 + 20;
/** Slots and what the kernel puts into them are aligned to this. */
export const SLOT_ALIGNMENT = 16;
/** 32-bit words of struct tpacket2_hdr. */
export const SLOT_STATUS = 0;
export const SLOT_LENGTH = 1;
export const SLOT_CAPTURED = 2;
/** 16-bit halves of struct tpacket2_hdr. */
export const SLOT_MAC_OFFSET = 6;
export const SLOT_VLAN_TCI = 12;
export const SLOT_VLAN_TPID = 13;

/** struct virtio_net_hdr: flags 8, gso_type 8, hdr_len, gso_size, csum_start, csum_offset 16 each. */
export const VNET_HEADER_BYTES = 10;
export const VNET_NEEDS_CHECKSUM = 1;
export const VNET_GSO_NONE = 0;
export const VNET_GSO_TCPV4 = 1;
export const VNET_GSO_TCPV6 = 4;
export const VNET_GSO_UDP_L4 = 5;
/** Set beside a TCP type: the packet carries CWR, which only the first segment keeps. */
export const VNET_GSO_ECN = 0x80;

export const SIOCGIFFLAGS = 0x8913;
export const SIOCGIFMTU = 0x8921;
export const SIOCGIFHWADDR = 0x8927;
export const SIOCGIFINDEX = 0x8933;
export const SIOCETHTOOL = 0x8946;
/** Bytes of a socket's frames that have not left yet. */
export const SIOCOUTQ = 0x5411;
/** sizeof(struct ifreq); the name takes the first 16 bytes. */
export const IFREQ_BYTES = 40;
export const IFNAMSIZ = 16;
export const IFF_UP = 1;
export const ARPHRD_ETHER = 1;
export const ETHTOOL_GET_FLAGS = 0x25;
export const ETHTOOL_SET_FLAGS = 0x26;
export const ETHTOOL_GET_GRO = 0x2b;
export const ETHTOOL_SET_GRO = 0x2c;
export const ETH_FLAG_LRO = 1 << 15;

export const NETLINK_ROUTE = 0;
export const RTMGRP_LINK = 1;
export const RTM_NEWLINK = 16;
export const RTM_DELLINK = 17;
