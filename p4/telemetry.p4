// What the fabric can be asked about: counters per port and kind and per transfer, and how full queues were on the way.

#ifndef DDF_TELEMETRY_P4
#define DDF_TELEMETRY_P4

control IngressTelemetry(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x12000001)
    counter<bit<32>>(PORT_COUNTER_SIZE, CounterType.packets_and_bytes) ingress_port_counter;

    apply {
        if (hdr.fabric.isValid()) {
            meta.kind = hdr.fabric.packet_type <= FABRIC_TYPE_PROBE ? hdr.fabric.packet_type : KIND_OTHER;
        } else if (hdr.ipv4.isValid()) {
            meta.kind = hdr.ipv4.destination >= IPV4_MULTICAST_FIRST ? KIND_IPV4_MULTICAST : KIND_IPV4;
        } else if (hdr.ethernet.isValid() && hdr.ethernet.ether_type == ETHERTYPE_ARP) {
            meta.kind = KIND_ARP;
        }
        if (hdr.object_tag.isValid()) {
            meta.came_tagged = 1;
        }
        if (!hdr.packet_out.isValid()) {
            ingress_port_counter.count((bit<32>)(standard_metadata.ingress_port ++ meta.came_tagged ++ meta.kind));
        }
    }
}

control EgressTelemetry(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Counts a packet at the length it came in with: whoever reads the bytes corrects them for a tag that came or went.
    @id(0x12000002)
    counter<bit<32>>(PORT_COUNTER_SIZE, CounterType.packets_and_bytes) egress_port_counter;

    @id(0x12000003)
    counter<bit<32>>(TRANSFER_SIZE, CounterType.packets_and_bytes) transfer_egress_counter;

    bit<8> queue_level;

    apply {
        if (meta.drop_reason == DROP_NONE && meta.cpu_traffic == 0) {
            egress_port_counter.count((bit<32>)(standard_metadata.egress_port ++ meta.came_tagged ++ meta.kind));
            // The level is the number of frames that were queued before this one, as far as a byte goes.
            queue_level = standard_metadata.enq_qdepth > 255 ? 8w255 : (bit<8>)standard_metadata.enq_qdepth;
            if (hdr.fabric.isValid()) {
                transfer_egress_counter.count((bit<32>)meta.transfer_index);
                if (queue_level > hdr.fabric.queue_level) {
                    hdr.fabric.queue_level = queue_level;
                }
            } else if (queue_level >= ECN_MARK_LEVEL && (hdr.ipv4.ecn == 1 || hdr.ipv4.ecn == 2)) {
                // RFC 3168: ECT becomes CE. The first word of the header grows by 3 - ecn, so the checksum shrinks by as much
                // in ones' complement (RFC 1624).
                bit<32> sum = (bit<32>)hdr.ipv4.checksum + 0xFFFC + (bit<32>)hdr.ipv4.ecn;
                hdr.ipv4.checksum = sum[15:0] + sum[31:16];
                hdr.ipv4.ecn = 3;
            }
        }
    }
}

#endif
