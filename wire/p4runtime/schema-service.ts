/** Schema: the P4Runtime service and what its calls and its stream carry (P4Runtime 1.5, package p4.v1). */
export const P4_RUNTIME_SCHEMA = `
syntax = "proto3";
package p4.v1;

service P4Runtime {
  rpc Write(WriteRequest) returns (WriteResponse);
  rpc Read(ReadRequest) returns (stream ReadResponse);
  rpc SetForwardingPipelineConfig(SetForwardingPipelineConfigRequest) returns (SetForwardingPipelineConfigResponse);
  rpc GetForwardingPipelineConfig(GetForwardingPipelineConfigRequest) returns (GetForwardingPipelineConfigResponse);
  rpc StreamChannel(stream StreamMessageRequest) returns (stream StreamMessageResponse);
  rpc Capabilities(CapabilitiesRequest) returns (CapabilitiesResponse);
}

message WriteRequest {
  enum Atomicity {
    CONTINUE_ON_ERROR = 0;
    ROLLBACK_ON_ERROR = 1;
    DATAPLANE_ATOMIC = 2;
  }
  uint64 device_id = 1;
  // Deprecated in favour of role.
  uint64 role_id = 2;
  Uint128 election_id = 3;
  repeated Update updates = 4;
  Atomicity atomicity = 5;
  string role = 6;
}

message WriteResponse {}

message ReadRequest {
  uint64 device_id = 1;
  repeated Entity entities = 2;
  string role = 3;
}

message ReadResponse { repeated Entity entities = 1; }

message Update {
  enum Type {
    UNSPECIFIED = 0;
    INSERT = 1;
    MODIFY = 2;
    DELETE = 3;
  }
  Type type = 1;
  Entity entity = 2;
}

message StreamMessageRequest {
  oneof update {
    MasterArbitrationUpdate arbitration = 1;
    PacketOut packet = 2;
    DigestListAck digest_ack = 3;
    google.protobuf.Any other = 4;
  }
}

message StreamMessageResponse {
  oneof update {
    MasterArbitrationUpdate arbitration = 1;
    PacketIn packet = 2;
    DigestList digest = 3;
    IdleTimeoutNotification idle_timeout_notification = 4;
    google.protobuf.Any other = 5;
    StreamError error = 6;
  }
}

message PacketMetadata {
  uint32 metadata_id = 1;
  bytes value = 2;
}

message PacketOut {
  bytes payload = 1;
  repeated PacketMetadata metadata = 2;
}

message PacketIn {
  bytes payload = 1;
  repeated PacketMetadata metadata = 2;
}

message DigestListAck {
  uint32 digest_id = 1;
  uint64 list_id = 2;
}

message DigestList {
  uint32 digest_id = 1;
  uint64 list_id = 2;
  repeated P4Data data = 3;
  // Nanoseconds since the epoch.
  int64 timestamp = 4;
}

message MasterArbitrationUpdate {
  uint64 device_id = 1;
  Role role = 2;
  Uint128 election_id = 3;
  google.rpc.Status status = 4;
}

message Role {
  // Deprecated in favour of name.
  uint64 id = 1;
  google.protobuf.Any config = 2;
  string name = 3;
}

message IdleTimeoutNotification {
  repeated TableEntry table_entry = 1;
  // Nanoseconds since the epoch.
  int64 timestamp = 2;
}

message StreamError {
  int32 canonical_code = 1;
  string message = 2;
  string space = 3;
  int32 code = 4;
  oneof details {
    PacketOutError packet_out = 5;
    DigestListAckError digest_list_ack = 6;
    StreamOtherError other = 7;
  }
}

message PacketOutError { PacketOut packet_out = 1; }
message DigestListAckError { DigestListAck digest_list_ack = 1; }
message StreamOtherError { google.protobuf.Any other = 1; }

message Uint128 {
  uint64 high = 1;
  uint64 low = 2;
}

message SetForwardingPipelineConfigRequest {
  enum Action {
    UNSPECIFIED = 0;
    VERIFY = 1;
    VERIFY_AND_SAVE = 2;
    VERIFY_AND_COMMIT = 3;
    COMMIT = 4;
    RECONCILE_AND_COMMIT = 5;
  }
  uint64 device_id = 1;
  // Deprecated in favour of role.
  uint64 role_id = 2;
  Uint128 election_id = 3;
  Action action = 4;
  ForwardingPipelineConfig config = 5;
  string role = 6;
}

message SetForwardingPipelineConfigResponse {}

message ForwardingPipelineConfig {
  message Cookie { uint64 cookie = 1; }
  p4.config.v1.P4Info p4info = 1;
  bytes p4_device_config = 2;
  Cookie cookie = 3;
}

message GetForwardingPipelineConfigRequest {
  enum ResponseType {
    ALL = 0;
    COOKIE_ONLY = 1;
    P4INFO_AND_COOKIE = 2;
    DEVICE_CONFIG_AND_COOKIE = 3;
  }
  uint64 device_id = 1;
  ResponseType response_type = 2;
}

message GetForwardingPipelineConfigResponse { ForwardingPipelineConfig config = 1; }

// What went wrong with one update of a Write, or that nothing did (code 0).
message Error {
  int32 canonical_code = 1;
  string message = 2;
  string space = 3;
  int32 code = 4;
  google.protobuf.Any details = 5;
}

// Port numbers with a meaning, in the 32-bit numbering of SDN controllers: 0xfffffeff, 0xfffffffa, 0xfffffffd as int32.
enum SdnPort {
  SDN_PORT_UNKNOWN = 0;
  SDN_PORT_MIN = 1;
  SDN_PORT_MAX = -257;
  SDN_PORT_RECIRCULATE = -6;
  SDN_PORT_CPU = -3;
}

message CapabilitiesRequest { uint64 device_id = 1; }

message CapabilitiesResponse {
  string p4runtime_api_version = 1;
  google.protobuf.Any experimental = 999;
}
`;
