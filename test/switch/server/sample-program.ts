import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';

/** A program with one of everything that the server distinguishes. */
export const SAMPLE_P4INFO = `
tables {
  preamble { id: 0x02000001 name: "Ingress.exact_table" alias: "exact_table" }
  match_fields { id: 1 name: "label" bitwidth: 32 match_type: EXACT }
  match_fields { id: 2 name: "small" bitwidth: 8 match_type: EXACT }
  action_refs { id: 0x01000001 }
  action_refs { id: 0x01000002 }
  action_refs { id: 0x01000003 scope: DEFAULT_ONLY }
  action_refs { id: 0x01000004 scope: TABLE_ONLY }
  direct_resource_ids: 0x13000001
  size: 16
}
tables {
  preamble { id: 0x02000002 name: "Ingress.ternary_table" alias: "ternary_table" }
  match_fields { id: 1 name: "address" bitwidth: 32 match_type: TERNARY }
  match_fields { id: 2 name: "port_range" bitwidth: 16 match_type: RANGE }
  match_fields { id: 3 name: "flag" bitwidth: 8 match_type: OPTIONAL }
  match_fields { id: 4 name: "exact_part" bitwidth: 9 match_type: EXACT }
  action_refs { id: 0x01000001 }
  action_refs { id: 0x01000002 }
  size: 64
}
tables {
  preamble { id: 0x02000003 name: "Ingress.lpm_table" alias: "lpm_table" }
  match_fields { id: 1 name: "destination" bitwidth: 32 match_type: LPM }
  action_refs { id: 0x01000001 }
  action_refs { id: 0x01000002 }
  implementation_id: 0x11000001
  const_default_action_id: 0x01000002
  size: 64
}
tables {
  preamble { id: 0x02000004 name: "Ingress.const_table" alias: "const_table" }
  match_fields { id: 1 name: "key" bitwidth: 8 match_type: EXACT }
  action_refs { id: 0x01000001 }
  action_refs { id: 0x01000002 }
  direct_resource_ids: 0x13000002
  is_const_table: true
  has_initial_entries: true
  size: 4
}
tables {
  preamble { id: 0x02000005 name: "Ingress.initial_table" alias: "initial_table" }
  match_fields { id: 1 name: "key" bitwidth: 8 match_type: OPTIONAL }
  action_refs { id: 0x01000001 }
  action_refs { id: 0x01000002 }
  has_initial_entries: true
  size: 8
}
tables {
  preamble { id: 0x02000006 name: "Ingress.keyless" alias: "keyless" }
  action_refs { id: 0x01000001 }
  action_refs { id: 0x01000002 }
  size: 1
}
tables {
  preamble { id: 0x02000007 name: "Ingress.idle_table" alias: "idle_table" }
  match_fields { id: 1 name: "key" bitwidth: 48 match_type: EXACT }
  action_refs { id: 0x01000002 }
  idle_timeout_behavior: NOTIFY_CONTROL
  size: 2000
}
actions {
  preamble { id: 0x01000001 name: "Ingress.forward" alias: "forward" }
  params { id: 1 name: "port" bitwidth: 9 }
  params { id: 2 name: "tag" bitwidth: 64 }
}
actions { preamble { id: 0x01000002 name: "Ingress.drop" alias: "drop" } }
actions { preamble { id: 0x01000003 name: "Ingress.miss" alias: "miss" } }
actions { preamble { id: 0x01000004 name: "Ingress.hit" alias: "hit" } }
actions { preamble { id: 0x01000005 name: "Ingress.elsewhere" alias: "elsewhere" } }
action_profiles {
  preamble { id: 0x11000001 name: "Ingress.selector" alias: "selector" }
  table_ids: 0x02000003
  with_selector: true
  size: 10
  max_group_size: 6
}
counters { preamble { id: 0x12000001 name: "Ingress.drops" alias: "drops" } spec { unit: BOTH } size: 8 }
counters { preamble { id: 0x12000002 name: "Ingress.ports" alias: "ports" } spec { unit: PACKETS } size: 4 }
direct_counters { preamble { id: 0x13000001 name: "Ingress.exact_counter" alias: "exact_counter" } spec { unit: BOTH } direct_table_id: 0x02000001 }
direct_counters { preamble { id: 0x13000002 name: "Ingress.const_counter" alias: "const_counter" } spec { unit: BOTH } direct_table_id: 0x02000004 }
meters { preamble { id: 0x14000001 name: "Ingress.rates" alias: "rates" } spec { unit: PACKETS } size: 4 }
meters { preamble { id: 0x14000002 name: "Ingress.single" alias: "single" } spec { unit: PACKETS type: SINGLE_RATE_TWO_COLOR } size: 2 }
registers { preamble { id: 0x16000001 name: "Ingress.state" alias: "state" } type_spec { bitstring { bit { bitwidth: 12 } } } size: 8 }
registers { preamble { id: 0x16000002 name: "Ingress.signed" alias: "signed" } type_spec { bitstring { int { bitwidth: 8 } } } size: 2 }
digests { preamble { id: 0x17000001 name: "learned" alias: "learned" } }
value_sets { preamble { id: 0x03000001 name: "values" alias: "values" } size: 4 }
controller_packet_metadata {
  preamble { id: 0x04000001 name: "packet_in" alias: "packet_in" }
  metadata { id: 1 name: "ingress_port" bitwidth: 16 }
  metadata { id: 2 name: "reason" bitwidth: 8 }
}
controller_packet_metadata {
  preamble { id: 0x04000002 name: "packet_out" alias: "packet_out" }
  metadata { id: 1 name: "egress_port" bitwidth: 16 }
}
`;

export const SAMPLE = new P4InfoIndex(parseP4InfoText(SAMPLE_P4INFO));
