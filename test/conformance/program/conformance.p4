// What the conformance checks run: one of everything that P4Runtime distinguishes. All packets come from the controller; what
// a packet_out asks for is done, and what became of the packet stands in the packet_in that the controller gets back.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

@controller_header("packet_out")
header packet_out_t {
    @id(1) bit<16> egress_port;      // 0: nowhere
    @id(2) bit<16> multicast_group;  // 0: none
    @id(3) bit<16> clone_session;    // 0: none
    @id(4) bit<8>  digest;           // 0: none
}

@controller_header("packet_in")
header packet_in_t {
    @id(1) bit<16> ingress_port;
    @id(2) bit<16> egress_port;
    @id(3) bit<16> instance;
    @id(4) bit<32> tag;
    @id(5) bit<32> same_tag;
    @id(6) bit<8>  colour;
    @id(7) bit<8>  in_set;
}

header probe_t {
    bit<8>  kind;
    bit<32> label;
    bit<8>  small;
    bit<32> address;
    bit<16> number;
    bit<8>  flag;
    bit<7>  unused;
    bit<9>  part;
}

struct headers_t {
    packet_out_t packet_out;
    packet_in_t  packet_in;
    probe_t      probe;
}

struct metadata_t {
    @field_list(1)
    bit<32> tag;
    @field_list(1)
    bit<32> same_tag;
    bit<2>  colour;
    bit<8>  in_set;
}

struct learned_t {
    bit<32> address;
    bit<8>  small;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @id(0x03000001) value_set<bit<8>>(4) kinds;

    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: from_controller;
            default: probe;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition probe;
    }
    state probe {
        packet.extract(hdr.probe);
        transition select(hdr.probe.kind) {
            kinds: member;
            default: accept;
        }
    }
    state member {
        meta.in_set = 1;
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SwitchIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @id(0x12000001) counter(8, CounterType.packets_and_bytes) seen;
    @id(0x12000002) counter(4, CounterType.packets) others;
    @id(0x13000001) direct_counter(CounterType.packets_and_bytes) exact_counter;
    @id(0x13000002) direct_counter(CounterType.packets_and_bytes) const_counter;
    @id(0x14000001) meter(4, MeterType.packets) rates;
    @id(0x15000001) direct_meter<bit<2>>(MeterType.packets) meter_of_metered;
    @id(0x16000001) register<bit<12>>(8) state;
    @id(0x16000002) register<int<8>>(2) signed;

    // forward and skip are for many tables, the other two for one place each.
    @id(0x01000001) action forward(@id(1) bit<32> tag, @id(2) bit<32> same_tag) {
        meta.tag = tag;
        meta.same_tag = same_tag;
    }
    @id(0x01000002) action skip() { }
    @id(0x01000003) action miss() { }
    @id(0x01000004) action hit() { }
    @id(0x01000005) action elsewhere() { }
    @id(0x01000006) action measure() {
        meter_of_metered.read(meta.colour);
    }
    @id(0x01000007) action to_port(@id(1) bit<9> port) {
        standard.egress_spec = port;
    }

    @id(0x02000001) table exact_table {
        key = {
            hdr.probe.label: exact @name("label") @id(1);
            hdr.probe.small: exact @name("small") @id(2);
        }
        actions = {
            forward;
            skip;
            to_port;
            @defaultonly miss;
            @tableonly hit;
        }
        default_action = skip();
        counters = exact_counter;
        size = 16;
    }
    @id(0x02000002) table ternary_table {
        key = {
            hdr.probe.address: ternary @name("address") @id(1);
            hdr.probe.number: range @name("number") @id(2);
            hdr.probe.flag: optional @name("flag") @id(3);
            hdr.probe.part: exact @name("part") @id(4);
        }
        actions = { forward; skip; }
        default_action = skip();
        size = 64;
    }

    @id(0x11000001) @max_group_size(6)
    action_selector(HashAlgorithm.crc16, 10, 16) one_shot_selector;
    @id(0x02000003) table one_shot_table {
        key = {
            hdr.probe.address: lpm @name("address") @id(1);
            hdr.probe.number: selector;
            hdr.probe.small: selector;
        }
        actions = { forward; skip; }
        implementation = one_shot_selector;
        size = 64;
    }
    @id(0x11000002) @max_group_size(6)
    action_selector(HashAlgorithm.crc16, 10, 16) group_selector;
    @id(0x02000008) table group_table {
        key = {
            hdr.probe.label: exact @name("label") @id(1);
            hdr.probe.number: selector;
            hdr.probe.small: selector;
        }
        actions = { forward; skip; @defaultonly miss; }
        implementation = group_selector;
        size = 64;
    }
    @id(0x11000003) action_profile(4) members;
    @id(0x02000009) table member_table {
        key = {
            hdr.probe.label: exact @name("label") @id(1);
        }
        actions = { forward; skip; }
        implementation = members;
        size = 64;
    }
    @id(0x02000004) table const_table {
        key = {
            hdr.probe.small: exact @name("small") @id(1);
        }
        actions = { forward; skip; }
        default_action = skip();
        const entries = {
            0xf1: skip();
            0xf2: forward(7, 7);
        }
        counters = const_counter;
    }
    @id(0x02000005) table initial_table {
        key = {
            hdr.probe.flag: ternary @name("flag") @id(1);
        }
        actions = { forward; skip; }
        default_action = skip();
        entries = {
            0xf1: skip();
            0xf2: skip();
        }
        size = 2;
    }
    @id(0x02000006) table keyless_table {
        actions = { forward; skip; }
        default_action = skip();
        size = 1;
    }
    @id(0x02000007) table idle_table {
        key = {
            hdr.probe.address: exact @name("address") @id(1);
        }
        actions = { skip; }
        default_action = skip();
        support_timeout = true;
        size = 4096;
    }
    @id(0x0200000a) table const_default_table {
        key = {
            hdr.probe.label: exact @name("label") @id(1);
        }
        actions = { forward; skip; }
        const default_action = skip();
        size = 4;
    }
    @id(0x0200000b) table metered_table {
        key = {
            hdr.probe.label: exact @name("label") @id(1);
        }
        actions = { measure; }
        default_action = measure();
        meters = meter_of_metered;
        size = 16;
    }
    @id(0x0200000c) table other_table {
        key = {
            hdr.probe.label: exact @name("label") @id(1);
        }
        actions = { elsewhere; }
        default_action = elsewhere();
        size = 16;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = (bit<9>)hdr.packet_out.egress_port;
            standard.mcast_grp = hdr.packet_out.multicast_group;
            if (hdr.packet_out.clone_session != 0)
                clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.packet_out.clone_session, 1);
            if (hdr.packet_out.digest != 0)
                digest<learned_t>(1, { hdr.probe.address, hdr.probe.small });
            if (hdr.packet_out.egress_port == 0)
                mark_to_drop(standard);
            hdr.packet_out.setInvalid();
        }
        exact_table.apply();
        ternary_table.apply();
        one_shot_table.apply();
        group_table.apply();
        member_table.apply();
        const_table.apply();
        initial_table.apply();
        keyless_table.apply();
        idle_table.apply();
        const_default_table.apply();
        metered_table.apply();
        other_table.apply();
        seen.count((bit<32>)hdr.probe.small & 7);
        others.count(0);
        bit<2> ignored;
        rates.execute_meter(0, ignored);
        bit<12> cell;
        state.read(cell, 0);
        state.write(0, cell + 1);
        int<8> negative;
        signed.read(negative, 0);
        signed.write(0, negative);
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = (bit<16>)standard.ingress_port;
            hdr.packet_in.egress_port = (bit<16>)standard.egress_port;
            hdr.packet_in.instance = standard.egress_rid;
            hdr.packet_in.tag = meta.tag;
            hdr.packet_in.same_tag = meta.same_tag;
            hdr.packet_in.colour = (bit<8>)meta.colour;
            hdr.packet_in.in_set = meta.in_set;
        }
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.probe);
    }
}

V1Switch(Parse(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), Deparse()) main;
