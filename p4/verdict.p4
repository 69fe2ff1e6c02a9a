// Where every path ends: a packet leaves, or is dropped and counted once by its reason.

#ifndef DDF_VERDICT_P4
#define DDF_VERDICT_P4

@id(0x12000004)
counter<bit<32>>(DROP_COUNTER_SIZE, CounterType.packets_and_bytes) drop_counter;

control IngressVerdict(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (meta.drop_reason != DROP_NONE) {
            drop_counter.count((bit<32>)meta.drop_reason);
            mark_to_drop(standard_metadata);
        } else if (meta.multicast_group != 0) {
            standard_metadata.mcast_grp = meta.multicast_group;
        } else {
            standard_metadata.egress_spec = meta.output_port;
        }
    }
}

control EgressVerdict(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (meta.drop_reason != DROP_NONE) {
            drop_counter.count((bit<32>)meta.drop_reason);
            mark_to_drop(standard_metadata);
        }
    }
}

#endif
