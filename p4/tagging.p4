// The object tag: between switches every packet of an object says which object that is.

#ifndef DDF_TAGGING_P4
#define DDF_TAGGING_P4

// Ingress: which object a host's ordinary packets belong to.
control Classification(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x01000006)
    action set_tag(bit<64> object_id, bit<32> object_version, bit<8> traffic_class) {
        meta.classified = 1;
        meta.object_id = object_id;
        meta.object_version = object_version;
        meta.traffic_class = traffic_class;
    }

    @id(0x01000007)
    action no_tag() {
    }

    @id(0x02000003)
    table classify {
        key = {
            hdr.ipv4.source: ternary @name("ipv4_source");
            hdr.ipv4.destination: ternary @name("ipv4_destination");
            hdr.ipv4.protocol: ternary @name("ip_protocol");
            meta.l4_source_port: ternary @name("l4_source_port");
            meta.l4_destination_port: ternary @name("l4_destination_port");
        }
        actions = {
            set_tag;
            @defaultonly no_tag;
        }
        const default_action = no_tag;
        size = CLASSIFY_SIZE;
    }

    apply {
        if (hdr.ipv4.isValid() && !hdr.fabric.isValid() && meta.drop_reason == DROP_NONE) {
            if (hdr.udp.isValid()) {
                meta.l4_source_port = hdr.udp.source_port;
                meta.l4_destination_port = hdr.udp.destination_port;
            } else if (hdr.tcp_ports.isValid()) {
                meta.l4_source_port = hdr.tcp_ports.source_port;
                meta.l4_destination_port = hdr.tcp_ports.destination_port;
            }
            if (meta.from_host == 1) {
                classify.apply();
            }
        }
    }
}

// Egress: the first switch adds the tag, the last one removes it.
control Tagging(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x01000008)
    action set_switch_id(bit<16> switch_id) {
        hdr.object_tag.ingress_switch = switch_id;
    }

    // Keyless: the controller changes the default action. 0: it has not.
    @id(0x02000004)
    table switch_identity {
        actions = {
            @defaultonly set_switch_id;
        }
        default_action = set_switch_id(0);
        size = 1;
    }

    @hidden
    action push_tag() {
        hdr.object_tag.setValid();
        hdr.object_tag.next_ether_type = hdr.ethernet.ether_type;
        hdr.object_tag.hops = 1;
        hdr.ethernet.ether_type = ETHERTYPE_OBJECT_TAG;
    }

    apply {
        if (meta.drop_reason == DROP_NONE && meta.cpu_traffic == 0) {
            if (hdr.object_tag.isValid()) {
                if (meta.to_host == 1) {
                    hdr.ethernet.ether_type = hdr.object_tag.next_ether_type;
                    hdr.object_tag.setInvalid();
                } else {
                    hdr.object_tag.hops = hdr.object_tag.hops + 1;
                }
            } else if (meta.to_host == 0) {
                if (hdr.fabric.isValid()) {
                    push_tag();
                    hdr.object_tag.tenant = hdr.fabric.tenant;
                    hdr.object_tag.object_serial = hdr.fabric.object_serial;
                    hdr.object_tag.object_version = hdr.fabric.object_version;
                    hdr.object_tag.traffic_class = 0;
                } else if (meta.classified == 1) {
                    push_tag();
                    hdr.object_tag.tenant = meta.object_id[63:48];
                    hdr.object_tag.object_serial = meta.object_id[47:0];
                    hdr.object_tag.object_version = meta.object_version;
                    hdr.object_tag.traffic_class = meta.traffic_class;
                }
                if (hdr.object_tag.isValid()) {
                    switch_identity.apply();
                }
            }
        }
    }
}

#endif
