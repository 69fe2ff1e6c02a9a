// A program for fuzzing: a parser that uses everything a v1model parser can, controls that send packets round again, copy and digest them.
// Compiled by p4c-bm2-ss 1.2.4.2 --arch v1model.
#include <core.p4>
#include <v1model.p4>

const bit<32> KIND_RESUBMITTED = 6;
const bit<32> KIND_RECIRCULATED = 4;

header ethernet_t { bit<48> destination; bit<48> source; bit<16> ether_type; }
header label_t { bit<20> label; bit<3> traffic_class; bit<1> bottom; bit<8> ttl; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> total_length; bit<16> identification; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> source; bit<32> destination;
}
header options_t { varbit<320> options; }
header wide_t { bit<128> source; bit<128> destination; int<64> signed_part; bit<5> odd; bit<123> rest; }
header short_t { bit<8> kind; bit<8> value; }
header long_t { bit<8> kind; bit<8> length; bit<48> value; }
header varying_t { bit<8> kind; bit<8> length; varbit<2040> value; }
header_union item_t { short_t short; long_t long; varying_t varying; }

struct headers_t {
    ethernet_t ethernet;
    label_t[4] labels;
    ipv4_t ipv4;
    options_t options;
    wide_t wide;
    item_t[5] items;
}

struct learnt_t { bit<48> source; bit<9> port; bit<32> turns; }

struct metadata_t {
    @field_list(1) bit<32> turns;
    @field_list(1, 2) bit<128> kept;
    bit<8> left;
    bit<16> hash;
    bit<2> colour;
    bit<32> count;
}

parser FuzzParser(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    value_set<bit<16>>(8) private_types;

    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.ether_type) {
            0x8847: labels;
            0x0800 &&& 0xfeff: ipv4;
            0x86dd .. 0x86df: wide;
            private_types: items;
            0x9000: skip;
            default: accept;
        }
    }
    state labels {
        packet.extract(headers.labels.next);
        metadata.count = headers.labels.lastIndex & 7;
        transition select(headers.labels.last.bottom, metadata.count) {
            (1, _): below;
            (0, 2): peek;
            default: labels;
        }
    }
    state peek {
        bit<20> next = packet.lookahead<bit<20>>();
        metadata.kept = (bit<128>) next;
        transition select(next) { 0: accept; default: labels; }
    }
    state below {
        transition select(packet.lookahead<bit<4>>()) { 4: ipv4; 6: wide; 0: items; default: accept; }
    }
    state ipv4 {
        packet.extract(headers.ipv4);
        verify(headers.ipv4.version == 4, error.ParserInvalidArgument);
        verify(headers.ipv4.ihl >= 5, error.HeaderTooShort);
        transition select(headers.ipv4.ihl) { 5: transport; default: options; }
    }
    state options {
        packet.extract(headers.options, ((bit<32>) headers.ipv4.ihl - 5) * 32);
        transition transport;
    }
    state transport {
        transition select(headers.ipv4.protocol) { 4: wide; 253: items; default: accept; }
    }
    state wide {
        packet.extract(headers.wide);
        metadata.kept = headers.wide.source ^ headers.wide.destination;
        transition select(headers.wide.odd) { 1 .. 7: items; default: accept; }
    }
    state skip {
        packet.advance((bit<32>) packet.lookahead<bit<8>>() * 8);
        transition select(packet.lookahead<bit<16>>()) { 0x9000: skip; default: items; }
    }
    state items {
        metadata.left = metadata.left + 1;
        transition select(packet.lookahead<bit<8>>()) { 1: short; 2: long; 3: varying; 4: skip; default: accept; }
    }
    state short { packet.extract(headers.items.next.short); transition items; }
    state long { packet.extract(headers.items.next.long); transition items; }
    state varying {
        bit<16> head = packet.lookahead<bit<16>>();
        packet.extract(headers.items.next.varying, (bit<32>) head[7:0] * 8);
        transition items;
    }
}

control FuzzVerify(inout headers_t headers, inout metadata_t metadata) {
    apply {
        verify_checksum(headers.ipv4.isValid() && headers.ipv4.ihl == 5,
            { headers.ipv4.version, headers.ipv4.ihl, headers.ipv4.tos, headers.ipv4.total_length, headers.ipv4.identification,
              headers.ipv4.flags, headers.ipv4.offset, headers.ipv4.ttl, headers.ipv4.protocol, headers.ipv4.source, headers.ipv4.destination },
            headers.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FuzzIngress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    register<bit<128>>(16) wide_cells;
    register<bit<32>>(64) cells;
    counter(32, CounterType.packets_and_bytes) packets;
    meter(16, MeterType.bytes) rates;
    action_selector(HashAlgorithm.crc16, 32, 16) spread_selector;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.packets) colours;

    action drop() { mark_to_drop(standard); }
    action out_of(bit<9> port) { standard.egress_spec = port; }
    action to_group(bit<16> group) { standard.mcast_grp = group; }
    action count_hit() { hits.count(); }
    action colour(bit<9> port) { hits.count(); colours.read(metadata.colour); standard.egress_spec = port; }
    action again() { resubmit_preserving_field_list(1); }
    action copy(bit<32> session) { clone_preserving_field_list(CloneType.I2E, session, 1); }
    action learn() { digest<learnt_t>(1, { headers.ethernet.source, standard.ingress_port, metadata.turns }); }
    action push() { headers.labels.push_front(2); headers.labels[0].setValid(); headers.labels[0].label = 7; headers.labels[1] = headers.labels[2]; }
    action pop() { headers.labels.pop_front(1); }
    action arithmetic(bit<8> by) {
        headers.wide.source = headers.wide.source |+| (bit<128>) by;
        headers.wide.destination = headers.wide.destination |-| (headers.wide.source << by);
        headers.wide.signed_part = (headers.wide.signed_part >> by) * -3;
        headers.wide.odd = headers.wide.odd - 9;
        metadata.kept = metadata.kept * headers.wide.source + (bit<128>) headers.wide.rest;
    }

    table exact_type {
        key = { headers.ethernet.ether_type: exact; headers.ipv4.isValid(): exact; }
        actions = { out_of; colour; to_group; count_hit; learn; drop; }
        default_action = out_of(3);
        size = 64;
        counters = hits;
        meters = colours;
    }
    table routes {
        key = { headers.ipv4.destination: lpm; }
        actions = { out_of; copy; again; to_group; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    table wide_routes {
        key = { headers.wide.source: ternary; headers.wide.signed_part: range; headers.wide.odd: optional; headers.labels[0].isValid(): exact; }
        actions = { arithmetic; push; pop; again; drop; @defaultonly NoAction; }
        default_action = NoAction();
        size = 64;
    }
    table spread {
        key = { headers.ethernet.destination: exact; headers.ethernet.source: selector; headers.ipv4.source: selector; }
        actions = { out_of; to_group; learn; NoAction; }
        implementation = spread_selector;
        size = 64;
    }

    apply {
        if (standard.checksum_error == 1 && standard.parser_error != error.NoError) { drop(); exit; }
        packets.count((bit<32>) headers.ethernet.source[5:0]);
        rates.execute_meter((bit<32>) headers.ethernet.source[4:0], metadata.colour);
        hash(metadata.hash, HashAlgorithm.crc32, (bit<16>) 1, { headers.ethernet.source, headers.wide.rest, metadata.kept }, (bit<32>) 1000);
        wide_cells.read(metadata.kept, (bit<32>) metadata.hash & 0x1f);
        wide_cells.write((bit<32>) metadata.hash & 0xf, metadata.kept + 1);
        cells.read(metadata.count, (bit<32>) standard.ingress_port & 0x3f);
        cells.write((bit<32>) standard.ingress_port & 0x3f, metadata.count + 1);
        metadata.turns = metadata.turns + 1;
        exact_type.apply();
        if (headers.ipv4.isValid()) { switch (routes.apply().action_run) { out_of: { headers.ipv4.ttl = headers.ipv4.ttl - 1; } copy: { push(); } default: { pop(); } } }
        if (headers.wide.isValid() && wide_routes.apply().hit) { spread.apply(); }
        if (standard.instance_type == KIND_RESUBMITTED) { log_msg("again {} {}", { metadata.turns, metadata.left }); }
        if (headers.items[1].long.isValid()) { headers.items[1].short.setValid(); headers.items[1].short = { 1, headers.wide.isValid() ? 8w3 : 8w4 }; }
        if (headers.items[4].varying.isValid()) { headers.items[4].varying.setInvalid(); }
        random(metadata.count, 0, (bit<32>) metadata.hash);
        if (headers.ethernet.source == 0x0102030405ff) { assert(headers.ethernet.destination != 0); }
    }
}

control FuzzEgress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    action round_again() { recirculate_preserving_field_list(2); }
    action copy_out(bit<32> session) { clone_preserving_field_list(CloneType.E2E, session, 2); }
    action cut(bit<32> bytes) { truncate(bytes); }
    action drop() { mark_to_drop(standard); }
    table egress {
        key = { standard.egress_port: exact; standard.instance_type: exact; }
        actions = { round_again; copy_out; cut; drop; @defaultonly NoAction; }
        default_action = NoAction();
        size = 64;
    }
    apply { egress.apply(); if (standard.instance_type == KIND_RECIRCULATED) { headers.ethernet.source = headers.ethernet.source + 1; } }
}

control FuzzUpdate(inout headers_t headers, inout metadata_t metadata) {
    apply {
        update_checksum_with_payload(headers.ipv4.isValid() && headers.options.isValid(),
            { headers.ipv4.source, headers.ipv4.destination, headers.options.options, headers.ipv4.total_length },
            headers.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FuzzDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.labels);
        packet.emit(headers.ipv4);
        packet.emit(headers.options);
        packet.emit(headers.wide);
        packet.emit(headers.items);
    }
}

V1Switch(FuzzParser(), FuzzVerify(), FuzzIngress(), FuzzEgress(), FuzzUpdate(), FuzzDeparser()) main;
