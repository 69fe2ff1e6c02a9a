// A patch panel: what comes in on ports 1 and 2 leaves on the other one, unread. For tests of ports.
#include <core.p4>
#include <v1model.p4>

struct headers_t {}
struct metadata_t {}

parser PatchParser(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    state start { transition accept; }
}

control PatchVerify(inout headers_t headers, inout metadata_t metadata) { apply {} }

control PatchIngress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    action forward(bit<9> port) { standard.egress_spec = port; }
    action drop() { mark_to_drop(standard); }
    table patch {
        key = { standard.ingress_port : exact; }
        actions = { forward; drop; }
        size = 2;
        const default_action = drop();
        const entries = {
            1 : forward(2);
            2 : forward(1);
        }
    }
    apply { patch.apply(); }
}

control PatchEgress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) { apply {} }
control PatchUpdate(inout headers_t headers, inout metadata_t metadata) { apply {} }
control PatchDeparser(packet_out packet, in headers_t headers) { apply {} }

V1Switch(PatchParser(), PatchVerify(), PatchIngress(), PatchEgress(), PatchUpdate(), PatchDeparser()) main;
