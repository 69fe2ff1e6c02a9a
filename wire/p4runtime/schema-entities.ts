/** Schema: the entities that controllers write and read (P4Runtime 1.5, package p4.v1). */
export const P4_ENTITIES_SCHEMA = `
syntax = "proto3";
package p4.v1;

message Entity {
  oneof entity {
    ExternEntry extern_entry = 1;
    TableEntry table_entry = 2;
    ActionProfileMember action_profile_member = 3;
    ActionProfileGroup action_profile_group = 4;
    MeterEntry meter_entry = 5;
    DirectMeterEntry direct_meter_entry = 6;
    CounterEntry counter_entry = 7;
    DirectCounterEntry direct_counter_entry = 8;
    PacketReplicationEngineEntry packet_replication_engine_entry = 9;
    ValueSetEntry value_set_entry = 10;
    RegisterEntry register_entry = 11;
    DigestEntry digest_entry = 12;
  }
}

message ExternEntry {
  uint32 extern_type_id = 1;
  uint32 extern_id = 2;
  google.protobuf.Any entry = 3;
}

message TableEntry {
  message IdleTimeout { int64 elapsed_ns = 1; }
  uint32 table_id = 1;
  repeated FieldMatch match = 2;
  TableAction action = 3;
  int32 priority = 4;
  // Deprecated in favour of metadata.
  uint64 controller_metadata = 5;
  MeterConfig meter_config = 6;
  CounterData counter_data = 7;
  bool is_default_action = 8;
  int64 idle_timeout_ns = 9;
  IdleTimeout time_since_last_hit = 10;
  bytes metadata = 11;
  MeterCounterData meter_counter_data = 12;
  bool is_const = 13;
}

// A field that does not matter is left out.
message FieldMatch {
  message Exact { bytes value = 1; }
  message Ternary {
    bytes value = 1;
    bytes mask = 2;
  }
  message LPM {
    bytes value = 1;
    int32 prefix_len = 2;
  }
  message Range {
    bytes low = 1;
    bytes high = 2;
  }
  message Optional { bytes value = 1; }
  uint32 field_id = 1;
  oneof field_match_type {
    Exact exact = 2;
    Ternary ternary = 3;
    LPM lpm = 4;
    Range range = 6;
    Optional optional = 7;
    google.protobuf.Any other = 100;
  }
}

message TableAction {
  oneof type {
    Action action = 1;
    uint32 action_profile_member_id = 2;
    uint32 action_profile_group_id = 3;
    ActionProfileActionSet action_profile_action_set = 4;
  }
}

message Action {
  message Param {
    uint32 param_id = 2;
    bytes value = 3;
  }
  uint32 action_id = 1;
  repeated Param params = 4;
}

message ActionProfileActionSet {
  enum ActionSelectionMode {
    DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR = 0;
    HASH = 1;
    RANDOM = 2;
  }
  enum SizeSemantics {
    DEFAULT_SIZE_DETERMINED_BY_ACTION_SELECTOR = 0;
    SUM_OF_WEIGHTS = 1;
    SUM_OF_MEMBERS = 2;
  }
  repeated ActionProfileAction action_profile_actions = 1;
  ActionSelectionMode action_selection_mode = 2;
  SizeSemantics size_semantics = 3;
}

message ActionProfileAction {
  Action action = 1;
  int32 weight = 2;
  oneof watch_kind {
    int32 watch = 3;
    bytes watch_port = 4;
  }
}

message ActionProfileMember {
  uint32 action_profile_id = 1;
  uint32 member_id = 2;
  Action action = 3;
}

message ActionProfileGroup {
  message Member {
    uint32 member_id = 1;
    int32 weight = 2;
    oneof watch_kind {
      int32 watch = 3;
      bytes watch_port = 4;
    }
  }
  uint32 action_profile_id = 1;
  uint32 group_id = 2;
  repeated Member members = 3;
  int32 max_size = 4;
}

message Index { int64 index = 1; }

message MeterEntry {
  uint32 meter_id = 1;
  Index index = 2;
  MeterConfig config = 3;
  MeterCounterData counter_data = 4;
}

message DirectMeterEntry {
  TableEntry table_entry = 1;
  MeterConfig config = 2;
  MeterCounterData counter_data = 3;
}

// Rates per second, bursts; in the meter's unit.
message MeterConfig {
  int64 cir = 1;
  int64 cburst = 2;
  int64 pir = 3;
  int64 pburst = 4;
  int64 eburst = 5;
}

message CounterEntry {
  uint32 counter_id = 1;
  Index index = 2;
  CounterData data = 3;
}

message DirectCounterEntry {
  TableEntry table_entry = 1;
  CounterData data = 2;
}

message CounterData {
  int64 byte_count = 1;
  int64 packet_count = 2;
}

message MeterCounterData {
  CounterData green = 1;
  CounterData yellow = 2;
  CounterData red = 3;
}

message PacketReplicationEngineEntry {
  oneof type {
    MulticastGroupEntry multicast_group_entry = 1;
    CloneSessionEntry clone_session_entry = 2;
  }
}

message BackupReplica {
  bytes port = 1;
  uint32 instance = 2;
}

message Replica {
  oneof port_kind {
    // Deprecated in favour of port.
    uint32 egress_port = 1;
    bytes port = 3;
  }
  uint32 instance = 2;
  repeated BackupReplica backup_replicas = 4;
}

message MulticastGroupEntry {
  uint32 multicast_group_id = 1;
  repeated Replica replicas = 2;
  bytes metadata = 3;
}

message CloneSessionEntry {
  uint32 session_id = 1;
  repeated Replica replicas = 2;
  uint32 class_of_service = 3;
  int32 packet_length_bytes = 4;
}

message ValueSetMember { repeated FieldMatch match = 1; }

message ValueSetEntry {
  uint32 value_set_id = 1;
  repeated ValueSetMember members = 2;
}

message RegisterEntry {
  uint32 register_id = 1;
  Index index = 2;
  P4Data data = 3;
}

message DigestEntry {
  message Config {
    int64 max_timeout_ns = 1;
    int32 max_list_size = 2;
    int64 ack_timeout_ns = 3;
  }
  uint32 digest_id = 1;
  Config config = 2;
}
`;
