// Header stacks, unions, fields of variable length, value sets and wide keys together: what p4c's own packet tests do not combine.
#include <core.p4>
#include <v1model.p4>

const bit<8> KIND_LABELS = 1;
const bit<8> KIND_OPTIONS = 2;
const bit<8> KIND_CHOICE = 3;

header start_t {
    bit<8> kind;
    bit<8> length;
}

header label_t {
    bit<20> label;
    bit<3>  class;
    bit<1>  bottom;
    bit<8>  hops;
}

header options_t {
    bit<4>       flags;
    varbit<256>  bytes;
    bit<4>       check;
}

header small_t {
    bit<8> value;
}

header large_t {
    bit<128> address;
}

header_union choice_t {
    small_t small;
    large_t large;
}

struct headers_t {
    start_t     start;
    label_t[4]  labels;
    options_t   options;
    choice_t[2] choices;
}

struct metadata_t {
    int<16> level;
}

parser PacketParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<8>>(4) more_kinds;

    state start {
        packet.extract(hdr.start);
        transition select(hdr.start.kind) {
            KIND_LABELS: labels;
            KIND_OPTIONS: options;
            KIND_CHOICE: choice;
            more_kinds: choice;
            default: accept;
        }
    }

    state labels {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom) {
            1: accept;
            default: labels;
        }
    }

    state options {
        packet.extract(hdr.options, (bit<32>) hdr.start.length * 8);
        transition accept;
    }

    state choice {
        transition select(packet.lookahead<bit<8>>()) {
            0xfd: large;
            default: small;
        }
    }

    state large {
        packet.extract(hdr.choices.next.large);
        transition rest;
    }

    state small {
        packet.extract(hdr.choices.next.small);
        transition rest;
    }

    state rest {
        hdr.start.length = hdr.start.length - 1;
        transition select(hdr.start.length) {
            0: accept;
            default: choice;
        }
    }
}

control Forwarding(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action forward(bit<9> port) {
        standard.egress_spec = port;
    }

    action reject() {
        mark_to_drop(standard);
    }

    table route {
        key = { hdr.choices[0].large.address: lpm @name("address"); }
        actions = { forward; reject; }
        default_action = reject();
        size = 16;
    }

    action push_label(bit<20> label) {
        hdr.labels.push_front(1);
        hdr.labels[0].setValid();
        hdr.labels[0].label = label;
        hdr.labels[0].class = 0;
        hdr.labels[0].bottom = 0;
        hdr.labels[0].hops = 64;
        standard.egress_spec = 1;
    }

    action pop_label() {
        hdr.labels.pop_front(1);
        standard.egress_spec = 2;
    }

    table labels {
        key = { hdr.labels[0].label: exact @name("label"); }
        actions = { push_label; pop_label; reject; }
        default_action = reject();
        size = 16;
    }

    // Levels are signed and stop at their ends.
    action set_level(int<16> step) {
        meta.level = meta.level |+| step;
        meta.level = meta.level |+| step;
        hdr.options.flags = (bit<4>) (bit<16>) (meta.level >> 12);
        standard.egress_spec = 3;
    }

    table levels {
        key = {
            hdr.options.check: ternary @name("check");
            hdr.options.flags: range @name("flags");
        }
        actions = { set_level; reject; }
        default_action = reject();
        size = 16;
    }

    apply {
        if (hdr.labels[0].isValid()) {
            labels.apply();
        } else if (hdr.options.isValid()) {
            levels.apply();
        } else if (hdr.choices[0].large.isValid()) {
            route.apply();
        } else if (hdr.choices[0].small.isValid()) {
            // A value becomes an address: the union changes what it is.
            bit<8> value = hdr.choices[0].small.value;
            hdr.choices[0].large.setValid();
            hdr.choices[0].large.address = 0xfd00_0000_0000_0000_0000_0000_0000_0000 + (bit<128>) value;
            standard.egress_spec = 4;
        } else {
            standard.egress_spec = 5;
        }
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control VerifyChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control UpdateChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PacketDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(PacketParser(), VerifyChecksums(), Forwarding(), NoEgress(), UpdateChecksums(), PacketDeparser()) main;
