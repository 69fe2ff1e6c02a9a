/** Schema: P4 types as P4Info describes them (P4Runtime 1.5, package p4.config.v1). */
export const P4_TYPES_SCHEMA = `
syntax = "proto3";
package p4.config.v1;

// Every named type of the program, by its name.
message P4TypeInfo {
  map<string, P4StructTypeSpec> structs = 1;
  map<string, P4HeaderTypeSpec> headers = 2;
  map<string, P4HeaderUnionTypeSpec> header_unions = 3;
  map<string, P4EnumTypeSpec> enums = 4;
  P4ErrorTypeSpec error = 5;
  map<string, P4SerializableEnumTypeSpec> serializable_enums = 6;
  map<string, P4NewTypeSpec> new_types = 7;
}

message P4DataTypeSpec {
  oneof type_spec {
    P4BitstringLikeTypeSpec bitstring = 1;
    P4BoolType bool = 2;
    P4TupleTypeSpec tuple = 3;
    P4NamedType struct = 4;
    P4NamedType header = 5;
    P4NamedType header_union = 6;
    P4HeaderStackTypeSpec header_stack = 7;
    P4HeaderUnionStackTypeSpec header_union_stack = 8;
    P4NamedType enum = 9;
    P4ErrorType error = 10;
    P4NamedType serializable_enum = 11;
    P4NamedType new_type = 12;
  }
}

message P4NamedType { string name = 1; }
message P4BoolType {}
message P4ErrorType {}

message P4BitstringLikeTypeSpec {
  oneof type_spec {
    P4BitTypeSpec bit = 1;
    P4IntTypeSpec int = 2;
    P4VarbitTypeSpec varbit = 3;
  }
  repeated string annotations = 4;
  repeated SourceLocation annotation_locations = 5;
  repeated StructuredAnnotation structured_annotations = 6;
}

message P4BitTypeSpec { int32 bitwidth = 1; }
message P4IntTypeSpec { int32 bitwidth = 1; }
message P4VarbitTypeSpec { int32 max_bitwidth = 1; }
message P4TupleTypeSpec { repeated P4DataTypeSpec members = 1; }

message P4StructTypeSpec {
  message Member {
    string name = 1;
    P4DataTypeSpec type_spec = 2;
  }
  repeated Member members = 1;
  repeated string annotations = 2;
  repeated SourceLocation annotation_locations = 3;
  repeated StructuredAnnotation structured_annotations = 4;
}

message P4HeaderTypeSpec {
  message Member {
    string name = 1;
    P4BitstringLikeTypeSpec type_spec = 2;
  }
  repeated Member members = 1;
  repeated string annotations = 2;
  repeated SourceLocation annotation_locations = 3;
  repeated StructuredAnnotation structured_annotations = 4;
}

message P4HeaderUnionTypeSpec {
  message Member {
    string name = 1;
    P4NamedType header = 2;
  }
  repeated Member members = 1;
  repeated string annotations = 2;
  repeated SourceLocation annotation_locations = 3;
  repeated StructuredAnnotation structured_annotations = 4;
}

message P4HeaderStackTypeSpec {
  P4NamedType header = 1;
  int32 size = 2;
}

message P4HeaderUnionStackTypeSpec {
  P4NamedType header_union = 1;
  int32 size = 2;
}

// Annotations with structure: @name[key=value] or @name[expression, ...]
message KeyValuePair {
  string key = 1;
  Expression value = 2;
}

message KeyValuePairList { repeated KeyValuePair kv_pairs = 1; }

message Expression {
  oneof value {
    string string_value = 1;
    int64 int64_value = 2;
    bool bool_value = 3;
  }
}

message ExpressionList { repeated Expression expressions = 1; }

message StructuredAnnotation {
  string name = 1;
  oneof body {
    ExpressionList expression_list = 2;
    KeyValuePairList kv_pair_list = 3;
  }
  SourceLocation source_location = 4;
}

message SourceLocation {
  string file = 1;
  int32 line = 2;
  int32 column = 3;
}

// An enum without underlying type has names only; a serializable one has values of bit<W>.
message P4EnumTypeSpec {
  message Member {
    string name = 1;
    repeated string annotations = 2;
    repeated StructuredAnnotation structured_annotations = 3;
    repeated SourceLocation annotation_locations = 4;
  }
  repeated Member members = 1;
  repeated string annotations = 2;
  repeated StructuredAnnotation structured_annotations = 3;
  repeated SourceLocation annotation_locations = 4;
}

message P4SerializableEnumTypeSpec {
  message Member {
    string name = 1;
    bytes value = 2;
    repeated string annotations = 3;
    repeated StructuredAnnotation structured_annotations = 4;
    repeated SourceLocation annotation_locations = 5;
  }
  P4BitTypeSpec underlying_type = 1;
  repeated Member members = 2;
  repeated string annotations = 3;
  repeated StructuredAnnotation structured_annotations = 4;
  repeated SourceLocation annotation_locations = 5;
}

message P4ErrorTypeSpec { repeated string members = 1; }

// @p4runtime_translation: values of the type look otherwise to controllers than to the switch.
message P4NewTypeTranslation {
  message SdnString {}
  string uri = 1;
  oneof sdn_type {
    int32 sdn_bitwidth = 2;
    SdnString sdn_string = 3;
  }
}

message P4NewTypeSpec {
  oneof representation {
    P4DataTypeSpec original_type = 1;
    P4NewTypeTranslation translated_type = 2;
  }
  repeated string annotations = 3;
  repeated StructuredAnnotation structured_annotations = 4;
  repeated SourceLocation annotation_locations = 5;
}
`;
