/** Schema: the two general Google messages that P4Runtime builds on. Field names, numbers and types are facts of those protocols. */
export const GOOGLE_ANY_SCHEMA = `
syntax = "proto3";
package google.protobuf;

// An encoded message beside the name of its type ("type.googleapis.com/" + full name).
message Any {
  string type_url = 1;
  bytes value = 2;
}
`;

export const GOOGLE_STATUS_SCHEMA = `
syntax = "proto3";
package google.rpc;

// Code as in gRPC; the details of a failed Write are one p4.v1.Error per update.
message Status {
  int32 code = 1;
  string message = 2;
  repeated google.protobuf.Any details = 3;
}
`;
