// Table sizes are guarantees: the controller reads them from P4Info and refuses what does not fit before it writes.

#ifndef DDF_SIZES_P4
#define DDF_SIZES_P4

const int PORT_ROLE_SIZE = 512;
const int ADMISSION_SIZE = 8192;
const int CLASSIFY_SIZE = 1024;
const int TRANSFER_SIZE = 16384;
const int PORT_BIT_SIZE = 512;
const int IPV4_LPM_SIZE = 4096;
const int ECMP_MEMBERS_SIZE = 4096;
const int ECMP_GROUPS_SIZE = 1024;
const int ECMP_MAX_GROUP_SIZE = 64;
const int IP_MULTICAST_SIZE = 2048; // bmv2 replicates 4096 groups, and transfers are among them
const int PUNT_SIZE = 64;
const int EGRESS_ROLE_SIZE = 512;
const int REPLICA_REWRITE_SIZE = 8192;

const int REPAIR_SLOTS = 65536;
const int DROP_COUNTER_SIZE = 64;
const int PORT_COUNTER_SIZE = 16384; // 512 ports x tagged x 16 kinds
const int CONTROL_METER_SIZE = 512;
const int PUNT_METER_SIZE = 512;

#endif
