// Numbers that leave the switch: on the wire, in counters, in P4Runtime. Never reused for another meaning.
// p4/build/constants.ts is generated from this file and sizes.p4; nobody types these numbers again.

#ifndef DDF_IDS_P4
#define DDF_IDS_P4

// EtherTypes and IP protocols
const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP = 0x0806;
const bit<16> ETHERTYPE_OBJECT_TAG = 0x88B5; // IEEE 802 local experimental EtherType 1
const bit<8> IP_PROTOCOL_ICMP = 1;
const bit<8> IP_PROTOCOL_IGMP = 2;
const bit<8> IP_PROTOCOL_TCP = 6;
const bit<8> IP_PROTOCOL_UDP = 17;
const bit<32> IPV4_MULTICAST_FIRST = 0xE0000000; // multicast, reserved and broadcast addresses

// UDP ports. Receivers are plain sockets in the reserved range; senders listen on the fabric port itself.
const bit<16> FABRIC_UDP_PORT = 56816;
const bit<16> RECEIVER_UDP_PORT_FIRST = 56832;
const bit<16> RECEIVER_UDP_PORT_LAST = 57343;

// Fabric header
const bit<4> FABRIC_VERSION = 1;
const bit<4> FABRIC_TYPE_DATA = 1;
const bit<4> FABRIC_TYPE_REPAIR = 2;
const bit<4> FABRIC_TYPE_NACK = 3;
const bit<4> FABRIC_TYPE_SYNC = 4;
const bit<4> FABRIC_TYPE_DONE = 5;
const bit<4> FABRIC_TYPE_FETCH = 6;
const bit<4> FABRIC_TYPE_REPORT = 7;
const bit<4> FABRIC_TYPE_PROBE = 8;
const bit<8> FABRIC_FLAG_LAST_BLOCK = 0x01;
const bit<8> FABRIC_FLAG_CLOSED = 0x02;
const bit<8> FABRIC_MARK_ANEW = 0x01;
const bit<8> FABRIC_HOP_LIMIT = 16;
const bit<8> FABRIC_SOURCE_SYMBOLS = 64; // of a full block; parity symbols are numbered from here on

// Repair registers count time in ticks of 2^4 microseconds of the switch's clock: bits 35..4 of its timestamp.
const bit<32> REPAIR_TICK_US = 16;
// The intervals that a switch starts with; the controller sets them by the path's RTT.
const bit<32> REPAIR_ELIMINATION_DEFAULT_US = 10000;
const bit<32> REPAIR_STALE_DEFAULT_US = 200000;
const bit<32> REPAIR_GRACE_DEFAULT_US = 10000;

// Ordinary packets that can say so are marked as having met congestion when at least this many frames were queued before them.
const bit<8> ECN_MARK_LEVEL = 32;

// Ports of the switches: 0 is never a port of ours, because a v1model packet that nothing decided about leaves by port 0.
const bit<9> PORT_CPU = 510;
const bit<9> PORT_DROP = 511;

// Why a packet-in came up
const bit<8> PUNT_REASON_ARP = 1;
const bit<8> PUNT_REASON_ICMP = 2;
const bit<8> PUNT_REASON_IGMP = 3;
const bit<8> PUNT_REASON_TTL = 4;

// What the per-port counters tell apart. The cell is (port << 5) | (tagged << 4) | kind.
const bit<4> KIND_OTHER = 0;
// 1..8 are the fabric types
const bit<4> KIND_IPV4_MULTICAST = 13; // ordinary, to any address from 224.0.0.0 on
const bit<4> KIND_ARP = 14;
const bit<4> KIND_IPV4 = 15;

// Drop reasons: the index of the drop counter
const bit<8> DROP_NONE = 0;
const bit<8> DROP_PARSER_ERROR = 1;
const bit<8> DROP_UNKNOWN_PORT = 2;
const bit<8> DROP_TAG_FROM_HOST = 3;
const bit<8> DROP_NOT_ADMITTED = 4;
const bit<8> DROP_RECEIVER_PORT_RANGE = 5;
const bit<8> DROP_FRAGMENT = 6;
const bit<8> DROP_IP_OPTIONS = 7;
const bit<8> DROP_CONTROL_RATE = 8;
const bit<8> DROP_FABRIC_VERSION = 9;
const bit<8> DROP_FABRIC_TYPE = 10;
const bit<8> DROP_HOP_LIMIT = 11;
const bit<8> DROP_UNKNOWN_LABEL = 12;
const bit<8> DROP_TENANT_MISMATCH = 13;
const bit<8> DROP_NOT_FROM_UPSTREAM = 14;
const bit<8> DROP_NOT_IN_TREE = 15;
const bit<8> DROP_ELIMINATED = 16;
const bit<8> DROP_DONE_PENDING = 17;
const bit<8> DROP_REPORT_NOT_WORSE = 18;
const bit<8> DROP_NO_ROUTE = 19;
const bit<8> DROP_TTL = 20;
const bit<8> DROP_IPV4_CHECKSUM = 21;
const bit<8> DROP_NOT_IP = 22;
const bit<8> DROP_PRUNED_INGRESS_PORT = 23;
const bit<8> DROP_PRUNED_NOT_ASKED = 24;
const bit<8> DROP_NO_RECEIVER = 25;
const bit<8> DROP_EMPTY_TREE = 26;
const bit<8> DROP_NOTHING_NEEDED = 27;
const bit<8> DROP_NO_MEMBERS = 28;
const bit<8> DROP_PUNT_RATE = 29;

#endif
