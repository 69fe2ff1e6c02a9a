/**
 * Schema: what a role may do. P4Runtime leaves role configs open; this is the one that Stratum's switches take, so that its controllers can be used
 * as they are.
 */
export const ROLE_CONFIG_SCHEMA = `
syntax = "proto3";
package stratum;

message P4RoleConfig {
  // Packets whose metadata has this value.
  message PacketFilter {
    uint32 metadata_id = 1;
    bytes value = 2;
  }
  // Objects of the P4Info that this role alone writes.
  repeated uint32 exclusive_p4_ids = 1;
  // Objects that this role writes, and others may too.
  repeated uint32 shared_p4_ids = 2;
  // Unset: all packets.
  PacketFilter packet_in_filter = 3;
  bool receives_packet_ins = 4;
  bool can_push_pipeline = 5;
}
`;
