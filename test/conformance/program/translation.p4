// Types that look otherwise to controllers than to the switch: numbers of another width, and names.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("ddf/port", 32)
type bit<9> port_t;
@p4runtime_translation("ddf/name", string)
type bit<2> name_t;

header request_t {
    port_t port;
    bit<7> unused;
}

struct headers_t {
    request_t request;
}

struct metadata_t {
    name_t name;
    port_t port;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SwitchIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @id(0x01000001) action name_it(@id(1) name_t name) {
        meta.name = name;
    }
    @id(0x01000002) action send(@id(1) port_t port) {
        meta.port = port;
    }
    @id(0x02000001) table by_port {
        key = {
            hdr.request.port: exact @name("port") @id(1);
        }
        actions = { name_it; @defaultonly NoAction; }
        size = 16;
    }
    @id(0x02000002) table by_name {
        key = {
            meta.name: exact @name("name") @id(1);
        }
        actions = { send; @defaultonly NoAction; }
        size = 16;
    }

    apply {
        by_port.apply();
        by_name.apply();
        standard.egress_spec = (bit<9>)meta.port;
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
    }
}

V1Switch(Parse(), Verify(), SwitchIngress(), SwitchEgress(), Compute(), Deparse()) main;
