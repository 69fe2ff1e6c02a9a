// Generated from p4/ids.p4 and p4/sizes.p4 by `npm run p4:build`. Do not edit.

export const ETHERTYPE_IPV4 = 0x0800;
export const ETHERTYPE_ARP = 0x0806;
export const ETHERTYPE_OBJECT_TAG = 0x88B5;
export const IP_PROTOCOL_ICMP = 1;
export const IP_PROTOCOL_IGMP = 2;
export const IP_PROTOCOL_TCP = 6;
export const IP_PROTOCOL_UDP = 17;
export const IPV4_MULTICAST_FIRST = 0xE0000000;
export const FABRIC_UDP_PORT = 56816;
export const RECEIVER_UDP_PORT_FIRST = 56832;
export const RECEIVER_UDP_PORT_LAST = 57343;
export const FABRIC_VERSION = 1;
export const FABRIC_TYPE_DATA = 1;
export const FABRIC_TYPE_REPAIR = 2;
export const FABRIC_TYPE_NACK = 3;
export const FABRIC_TYPE_SYNC = 4;
export const FABRIC_TYPE_DONE = 5;
export const FABRIC_TYPE_FETCH = 6;
export const FABRIC_TYPE_REPORT = 7;
export const FABRIC_TYPE_PROBE = 8;
export const FABRIC_FLAG_LAST_BLOCK = 0x01;
export const FABRIC_FLAG_CLOSED = 0x02;
export const FABRIC_MARK_ANEW = 0x01;
export const FABRIC_HOP_LIMIT = 16;
export const FABRIC_SOURCE_SYMBOLS = 64;
export const REPAIR_TICK_US = 16;
export const REPAIR_ELIMINATION_DEFAULT_US = 10000;
export const REPAIR_STALE_DEFAULT_US = 200000;
export const REPAIR_GRACE_DEFAULT_US = 10000;
export const ECN_MARK_LEVEL = 32;
export const PORT_CPU = 510;
export const PORT_DROP = 511;
export const PUNT_REASON_ARP = 1;
export const PUNT_REASON_ICMP = 2;
export const PUNT_REASON_IGMP = 3;
export const PUNT_REASON_TTL = 4;
export const KIND_OTHER = 0;
export const KIND_IPV4_MULTICAST = 13;
export const KIND_ARP = 14;
export const KIND_IPV4 = 15;
export const DROP_NONE = 0;
export const DROP_PARSER_ERROR = 1;
export const DROP_UNKNOWN_PORT = 2;
export const DROP_TAG_FROM_HOST = 3;
export const DROP_NOT_ADMITTED = 4;
export const DROP_RECEIVER_PORT_RANGE = 5;
export const DROP_FRAGMENT = 6;
export const DROP_IP_OPTIONS = 7;
export const DROP_CONTROL_RATE = 8;
export const DROP_FABRIC_VERSION = 9;
export const DROP_FABRIC_TYPE = 10;
export const DROP_HOP_LIMIT = 11;
export const DROP_UNKNOWN_LABEL = 12;
export const DROP_TENANT_MISMATCH = 13;
export const DROP_NOT_FROM_UPSTREAM = 14;
export const DROP_NOT_IN_TREE = 15;
export const DROP_ELIMINATED = 16;
export const DROP_DONE_PENDING = 17;
export const DROP_REPORT_NOT_WORSE = 18;
export const DROP_NO_ROUTE = 19;
export const DROP_TTL = 20;
export const DROP_IPV4_CHECKSUM = 21;
export const DROP_NOT_IP = 22;
export const DROP_PRUNED_INGRESS_PORT = 23;
export const DROP_PRUNED_NOT_ASKED = 24;
export const DROP_NO_RECEIVER = 25;
export const DROP_EMPTY_TREE = 26;
export const DROP_NOTHING_NEEDED = 27;
export const DROP_NO_MEMBERS = 28;
export const DROP_PUNT_RATE = 29;
export const PORT_ROLE_SIZE = 512;
export const ADMISSION_SIZE = 8192;
export const CLASSIFY_SIZE = 1024;
export const TRANSFER_SIZE = 16384;
export const PORT_BIT_SIZE = 512;
export const IPV4_LPM_SIZE = 4096;
export const ECMP_MEMBERS_SIZE = 4096;
export const ECMP_GROUPS_SIZE = 1024;
export const ECMP_MAX_GROUP_SIZE = 64;
export const IP_MULTICAST_SIZE = 2048;
export const PUNT_SIZE = 64;
export const EGRESS_ROLE_SIZE = 512;
export const REPLICA_REWRITE_SIZE = 8192;
export const REPAIR_SLOTS = 65536;
export const DROP_COUNTER_SIZE = 64;
export const PORT_COUNTER_SIZE = 16384;
export const CONTROL_METER_SIZE = 512;
export const PUNT_METER_SIZE = 512;

/** Drop reasons, as indexes of the drop counter, and what they are called. */
export const DROP_REASON_NAMES: Readonly<Record<number, string>> = {
  0: 'none',
  1: 'parser-error',
  2: 'unknown-port',
  3: 'tag-from-host',
  4: 'not-admitted',
  5: 'receiver-port-range',
  6: 'fragment',
  7: 'ip-options',
  8: 'control-rate',
  9: 'fabric-version',
  10: 'fabric-type',
  11: 'hop-limit',
  12: 'unknown-label',
  13: 'tenant-mismatch',
  14: 'not-from-upstream',
  15: 'not-in-tree',
  16: 'eliminated',
  17: 'done-pending',
  18: 'report-not-worse',
  19: 'no-route',
  20: 'ttl',
  21: 'ipv4-checksum',
  22: 'not-ip',
  23: 'pruned-ingress-port',
  24: 'pruned-not-asked',
  25: 'no-receiver',
  26: 'empty-tree',
  27: 'nothing-needed',
  28: 'no-members',
  29: 'punt-rate',
};
