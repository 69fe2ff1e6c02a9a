/** Schema: P4Info, what a compiled program offers to controllers (P4Runtime 1.5, package p4.config.v1). */
export const P4_INFO_SCHEMA = `
syntax = "proto3";
package p4.config.v1;

message P4Info {
  PkgInfo pkg_info = 1;
  repeated Table tables = 2;
  repeated Action actions = 3;
  repeated ActionProfile action_profiles = 4;
  repeated Counter counters = 5;
  repeated DirectCounter direct_counters = 6;
  repeated Meter meters = 7;
  repeated DirectMeter direct_meters = 8;
  repeated ControllerPacketMetadata controller_packet_metadata = 9;
  repeated ValueSet value_sets = 10;
  repeated Register registers = 11;
  repeated Digest digests = 12;
  repeated Extern externs = 100;
  P4TypeInfo type_info = 200;
}

message Documentation {
  string brief = 1;
  string description = 2;
}

message PlatformProperties {
  int32 multicast_group_table_size = 1;
  int32 multicast_group_table_total_replicas = 2;
  int32 multicast_group_table_max_replicas_per_entry = 3;
}

message PkgInfo {
  string name = 1;
  string version = 2;
  Documentation doc = 3;
  repeated string annotations = 4;
  string arch = 5;
  string organization = 6;
  string contact = 7;
  string url = 8;
  repeated StructuredAnnotation structured_annotations = 9;
  repeated SourceLocation annotation_locations = 10;
  PlatformProperties platform_properties = 11;
}

// The top byte of an id says what kind of object it names.
message P4Ids {
  enum Prefix {
    UNSPECIFIED = 0;
    ACTION = 0x01;
    TABLE = 0x02;
    VALUE_SET = 0x03;
    CONTROLLER_HEADER = 0x04;
    PSA_EXTERNS_START = 0x10;
    ACTION_PROFILE = 0x11;
    COUNTER = 0x12;
    DIRECT_COUNTER = 0x13;
    METER = 0x14;
    DIRECT_METER = 0x15;
    REGISTER = 0x16;
    DIGEST = 0x17;
    OTHER_EXTERNS_START = 0x80;
    MAX = 0xff;
  }
}

message Preamble {
  uint32 id = 1;
  string name = 2;
  string alias = 3;
  repeated string annotations = 4;
  Documentation doc = 5;
  repeated StructuredAnnotation structured_annotations = 6;
  repeated SourceLocation annotation_locations = 7;
}

message Extern {
  uint32 extern_type_id = 1;
  string extern_type_name = 2;
  repeated ExternInstance instances = 3;
}

message ExternInstance {
  Preamble preamble = 1;
  google.protobuf.Any info = 2;
}

message MatchField {
  enum MatchType {
    UNSPECIFIED = 0;
    EXACT = 2;
    LPM = 3;
    TERNARY = 4;
    RANGE = 5;
    OPTIONAL = 6;
  }
  uint32 id = 1;
  string name = 2;
  repeated string annotations = 3;
  int32 bitwidth = 4;
  oneof match {
    MatchType match_type = 5;
    string other_match_type = 7;
  }
  Documentation doc = 6;
  P4NamedType type_name = 8;
  repeated StructuredAnnotation structured_annotations = 9;
  repeated SourceLocation annotation_locations = 10;
}

message TableActionCall {
  message Argument {
    uint32 param_id = 2;
    bytes value = 3;
  }
  uint32 action_id = 1;
  repeated Argument arguments = 4;
}

message Table {
  enum IdleTimeoutBehavior {
    NO_TIMEOUT = 0;
    NOTIFY_CONTROL = 1;
  }
  Preamble preamble = 1;
  repeated MatchField match_fields = 2;
  repeated ActionRef action_refs = 3;
  uint32 const_default_action_id = 4;
  TableActionCall initial_default_action = 5;
  uint32 implementation_id = 6;
  repeated uint32 direct_resource_ids = 7;
  int64 size = 8;
  IdleTimeoutBehavior idle_timeout_behavior = 9;
  bool is_const_table = 10;
  bool has_initial_entries = 11;
  google.protobuf.Any other_properties = 100;
}

message ActionRef {
  enum Scope {
    TABLE_AND_DEFAULT = 0;
    TABLE_ONLY = 1;
    DEFAULT_ONLY = 2;
  }
  uint32 id = 1;
  repeated string annotations = 2;
  Scope scope = 3;
  repeated StructuredAnnotation structured_annotations = 4;
  repeated SourceLocation annotation_locations = 5;
}

message Action {
  message Param {
    uint32 id = 1;
    string name = 2;
    repeated string annotations = 3;
    int32 bitwidth = 4;
    Documentation doc = 5;
    P4NamedType type_name = 6;
    repeated StructuredAnnotation structured_annotations = 7;
    repeated SourceLocation annotation_locations = 8;
  }
  Preamble preamble = 1;
  repeated Param params = 2;
}

message ActionProfile {
  message SumOfWeights {}
  message SumOfMembers { int32 max_member_weight = 1; }
  Preamble preamble = 1;
  repeated uint32 table_ids = 2;
  bool with_selector = 3;
  int64 size = 4;
  int32 max_group_size = 5;
  oneof selector_size_semantics {
    SumOfWeights sum_of_weights = 6;
    SumOfMembers sum_of_members = 7;
  }
  bool weights_disallowed = 8;
}

message CounterSpec {
  enum Unit {
    UNSPECIFIED = 0;
    BYTES = 1;
    PACKETS = 2;
    BOTH = 3;
  }
  Unit unit = 1;
}

message Counter {
  Preamble preamble = 1;
  CounterSpec spec = 2;
  int64 size = 3;
  P4NamedType index_type_name = 4;
}

message DirectCounter {
  Preamble preamble = 1;
  CounterSpec spec = 2;
  uint32 direct_table_id = 3;
}

message MeterSpec {
  enum Unit {
    UNSPECIFIED = 0;
    BYTES = 1;
    PACKETS = 2;
  }
  enum Type {
    TWO_RATE_THREE_COLOR = 0;
    SINGLE_RATE_THREE_COLOR = 1;
    SINGLE_RATE_TWO_COLOR = 2;
  }
  Unit unit = 1;
  Type type = 2;
}

message Meter {
  Preamble preamble = 1;
  MeterSpec spec = 2;
  int64 size = 3;
  P4NamedType index_type_name = 4;
}

message DirectMeter {
  Preamble preamble = 1;
  MeterSpec spec = 2;
  uint32 direct_table_id = 3;
}

message ControllerPacketMetadata {
  message Metadata {
    uint32 id = 1;
    string name = 2;
    repeated string annotations = 3;
    int32 bitwidth = 4;
    P4NamedType type_name = 5;
    repeated StructuredAnnotation structured_annotations = 6;
    repeated SourceLocation annotation_locations = 7;
  }
  Preamble preamble = 1;
  repeated Metadata metadata = 2;
}

message ValueSet {
  Preamble preamble = 1;
  repeated MatchField match = 2;
  int32 size = 3;
}

message Register {
  Preamble preamble = 1;
  P4DataTypeSpec type_spec = 2;
  int32 size = 3;
  P4NamedType index_type_name = 4;
}

message Digest {
  Preamble preamble = 1;
  P4DataTypeSpec type_spec = 2;
}
`;
