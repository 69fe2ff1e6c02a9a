// What simple_switch does with a packet between its pipelines: the first byte says what is asked for, and every packet that leaves
// carries a report of the metadata that egress saw. A packet that comes around again leaves with a report for every time.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> op;
    bit<8> value;
}

header extra_t {
    bit<8> mark;
}

header report_t {
    bit<8>  instance_type;
    bit<8>  ingress_port;
    bit<8>  egress_rid;
    bit<16> packet_length;
    bit<8>  a;
    bit<8>  b;
    bit<8>  c;
    bit<8>  flags;
}

struct headers_t {
    request_t request;
    extra_t   extra;
    report_t  report;
}

struct metadata_t {
    @field_list(1)    bit<8>  a;
    @field_list(1, 2) bit<8>  b;
    @field_list(2)    bit<40> c;
    @field_list(3)    bit<8>  spare;
    bit<8>                    not_kept;
}

struct learned_t {
    bit<8>  value;
    bit<40> c;
    bit<9>  port;
}

struct other_t {
    bit<8> op;
}

const bit<32> SESSION = 5;
const bit<32> UNKNOWN_SESSION = 77;
const bit<16> GROUP = 1;

parser PathParser(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.request);
        transition select(standard.ingress_port) {
            4: parse_extra;
            default: accept;
        }
    }

    state parse_extra {
        packet.extract(headers.extra);
        transition accept;
    }
}

control PathVerify(inout headers_t headers, inout metadata_t meta) {
    apply {}
}

control PathIngress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        bit<8> op = headers.request.op;
        bool first = standard.instance_type == 0;
        meta.a = meta.a + headers.request.value;
        meta.b = meta.b + 1;
        meta.c = 0x12345677;
        meta.not_kept = meta.not_kept + 1;
        standard.egress_spec = 2;
        if (op == 1) {
            clone(CloneType.I2E, SESSION);
        } else if (op == 2) {
            clone_preserving_field_list(CloneType.I2E, SESSION, 1);
            headers.request.value = 0xee;
            meta.a = 0xaa;
        } else if (op == 3) {
            if (first) {
                resubmit_preserving_field_list(3);
            }
        } else if (op == 4) {
            if (first) {
                headers.request.value = 0xee;
                resubmit_preserving_field_list(1);
                standard.mcast_grp = GROUP;
            }
        } else if (op == 9) {
            mark_to_drop(standard);
            standard.mcast_grp = GROUP;
        } else if (op == 10) {
            standard.mcast_grp = GROUP;
            mark_to_drop(standard);
        } else if (op == 11) {
            truncate(16);
            standard.mcast_grp = GROUP;
        } else if (op == 12) {
            truncate(16);
        } else if (op == 13) {
            truncate(18);
            truncate(15);
            truncate(19);
        } else if (op == 14) {
            clone_preserving_field_list(CloneType.I2E, SESSION, 2);
            mark_to_drop(standard);
        } else if (op == 15) {
            clone(CloneType.I2E, UNKNOWN_SESSION);
        } else if (op == 16) {
            clone_preserving_field_list(CloneType.I2E, UNKNOWN_SESSION, 1);
            clone_preserving_field_list(CloneType.I2E, SESSION, 2);
        } else if (op == 17) {
            standard.priority = (bit<3>)headers.request.value;
        } else if (op == 20) {
            if (first) {
                clone_preserving_field_list(CloneType.I2E, SESSION, 1);
                resubmit_preserving_field_list(1);
            } else {
                clone_preserving_field_list(CloneType.I2E, SESSION, 1);
            }
        } else if (op == 22) {
            standard.instance_type = 3;
        } else if (op == 23) {
            standard.egress_spec = 0;
            exit;
        } else if (op == 26) {
            truncate(0);
        } else if (op == 27) {
            standard.mcast_grp = GROUP;
            clone(CloneType.I2E, SESSION);
        } else if (op == 30) {
            digest<learned_t>(1, {headers.request.value, meta.c, standard.ingress_port});
        } else if (op == 31) {
            digest<learned_t>(1, {headers.request.value, meta.c, standard.ingress_port});
            digest<other_t>(1, {headers.request.op});
            mark_to_drop(standard);
        } else if (op == 32) {
            if (first) {
                digest<other_t>(1, {headers.request.op});
                resubmit_preserving_field_list(3);
            }
        } else if (op == 33) {
            if (!first) {
                clone_preserving_field_list(CloneType.I2E, SESSION, 1);
            }
        } else if (op == 34) {
            log_msg("value {} from port {}", {headers.request.value, standard.ingress_port});
            assert(headers.request.value != 1);
            assume(headers.request.value != 2);
        }
    }
}

control PathEgress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        bit<8> op = headers.request.op;
        // The type is 0 again after a recirculation, but every time adds a report.
        bool first = standard.packet_length <= 20;
        headers.report.setValid();
        headers.report.instance_type = (bit<8>)standard.instance_type;
        headers.report.ingress_port = (bit<8>)standard.ingress_port;
        headers.report.egress_rid = (bit<8>)standard.egress_rid;
        headers.report.packet_length = (bit<16>)standard.packet_length;
        headers.report.a = meta.a;
        headers.report.b = meta.b;
        headers.report.c = (bit<8>)meta.c;
        headers.report.flags = (bit<8>)meta.not_kept;
        if (standard.ingress_global_timestamp == 0) {
            headers.report.flags = headers.report.flags | 0x80;
        }
        if (standard.egress_spec == 511) {
            headers.report.flags = headers.report.flags | 0x40;
        }
        if (headers.extra.isValid()) {
            headers.report.flags = headers.report.flags | 0x20;
        }
        if (op == 5) {
            if (first) {
                clone(CloneType.E2E, SESSION);
                headers.request.value = 0xee;
            }
        } else if (op == 6) {
            if (first) {
                clone_preserving_field_list(CloneType.E2E, SESSION, 1);
                meta.a = 0xaa;
                mark_to_drop(standard);
            }
        } else if (op == 7) {
            if (first) {
                recirculate_preserving_field_list(3);
            }
        } else if (op == 8) {
            if (first) {
                meta.a = 0x30;
                recirculate_preserving_field_list(1);
                truncate(3);
            }
        } else if (op == 24) {
            if (first) {
                truncate(17);
                clone(CloneType.E2E, SESSION);
            }
        } else if (op == 25) {
            if (first) {
                recirculate_preserving_field_list(1);
                mark_to_drop(standard);
            }
        } else if (op == 33) {
            if (first) {
                recirculate_preserving_field_list(1);
            }
        }
    }
}

control PathChecksums(inout headers_t headers, inout metadata_t meta) {
    apply {}
}

control PathDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.request);
        packet.emit(headers.extra);
        packet.emit(headers.report);
    }
}

V1Switch(PathParser(), PathVerify(), PathIngress(), PathEgress(), PathChecksums(), PathDeparser()) main;
