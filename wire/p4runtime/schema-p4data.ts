/** Schema: values of P4 types, in registers and digests (P4Runtime 1.5, package p4.v1). */
export const P4_DATA_SCHEMA = `
syntax = "proto3";
package p4.v1;

message P4Data {
  oneof data {
    bytes bitstring = 1;
    P4Varbit varbit = 2;
    bool bool = 3;
    P4StructLike tuple = 4;
    P4StructLike struct = 5;
    P4Header header = 6;
    P4HeaderUnion header_union = 7;
    P4HeaderStack header_stack = 8;
    P4HeaderUnionStack header_union_stack = 9;
    string enum = 10;
    string error = 11;
    bytes enum_value = 12;
  }
}

message P4Varbit {
  bytes bitstring = 1;
  int32 bitwidth = 2;
}

message P4StructLike { repeated P4Data members = 1; }

message P4Header {
  bool is_valid = 1;
  repeated bytes bitstrings = 2;
}

message P4HeaderUnion {
  string valid_header_name = 1;
  P4Header valid_header = 2;
}

message P4HeaderStack { repeated P4Header entries = 1; }
message P4HeaderUnionStack { repeated P4HeaderUnion entries = 1; }
`;
