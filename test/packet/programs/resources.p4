// Tables with what hangs on their entries: direct counters and meters, action selectors, idle timeouts; keys wider than 64 bits.
#include <core.p4>
#include <v1model.p4>

header packet_t {
    bit<8>   kind;
    bit<72>  name;
    bit<128> address;
    bit<16>  flow;
    bit<8>   colour;
    bit<8>   indirect_colour;
}

struct headers_t {
    packet_t packet;
}

struct metadata_t {
    bit<2> colour;
    bit<2> indirect_colour;
}

parser ResourcesParser(packet_in packet, out headers_t headers, inout metadata_t meta,
                       inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.packet);
        transition accept;
    }
}

control ResourcesVerify(inout headers_t headers, inout metadata_t meta) {
    apply {}
}

control ResourcesIngress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.bytes) rate;
    meter(4, MeterType.packets) packets;
    action_selector(HashAlgorithm.identity, 32w64, 32w16) members;

    action forward(bit<9> port) {
        standard.egress_spec = port;
    }

    action discard() {
        mark_to_drop(standard);
    }

    action metered(bit<9> port) {
        rate.read(meta.colour);
        standard.egress_spec = port;
    }

    action unmetered() {
        rate.read(meta.colour);
        standard.egress_spec = 9;
    }

    table named {
        key = { headers.packet.name: exact; }
        actions = { metered; unmetered; }
        meters = rate;
        default_action = unmetered();
        size = 4;
    }

    table counted {
        key = { headers.packet.name: exact; }
        actions = { forward; discard; }
        counters = hits;
        default_action = discard();
        support_timeout = true;
    }

    table addressed {
        key = {
            headers.packet.address: ternary;
            headers.packet.flow: range;
        }
        actions = { forward; discard; }
        default_action = discard();
    }

    table routed {
        key = { headers.packet.address: lpm; }
        actions = { forward; discard; }
        default_action = discard();
    }

    table spread {
        key = {
            headers.packet.name: exact;
            headers.packet.flow: selector;
        }
        actions = { forward; discard; }
        implementation = members;
    }

    apply {
        // What nobody sends anywhere goes to port 7.
        standard.egress_spec = 7;
        meta.colour = 3;
        if (headers.packet.kind == 1) {
            named.apply();
        } else if (headers.packet.kind == 2) {
            counted.apply();
        } else if (headers.packet.kind == 3) {
            addressed.apply();
        } else if (headers.packet.kind == 4) {
            routed.apply();
        } else if (headers.packet.kind == 5) {
            spread.apply();
        } else if (headers.packet.kind == 6) {
            packets.execute_meter((bit<32>)headers.packet.flow, meta.indirect_colour);
        }
        headers.packet.colour = (bit<8>)meta.colour;
        headers.packet.indirect_colour = (bit<8>)meta.indirect_colour;
    }
}

control ResourcesEgress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control ResourcesChecksums(inout headers_t headers, inout metadata_t meta) {
    apply {}
}

control ResourcesDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.packet);
    }
}

V1Switch(ResourcesParser(), ResourcesVerify(), ResourcesIngress(), ResourcesEgress(), ResourcesChecksums(),
         ResourcesDeparser()) main;
