// Fabric packets: one lookup says whose transfer it is, which side of the tree the packet may come from and where it goes.

#ifndef DDF_TRANSFERS_P4
#define DDF_TRANSFERS_P4

control Transfers(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x13000001)
    direct_counter(CounterType.packets_and_bytes) transfer_counter;

    bit<16> transfer_tenant = 0;
    bit<16> tree_group = 0;
    bit<9> upstream = 0;

    @id(0x01000009)
    action follow_tree(bit<16> tenant, bit<16> multicast_group, bit<9> upstream_port, bit<32> tree_mask,
                       bit<16> transfer_index) {
        transfer_tenant = tenant;
        tree_group = multicast_group;
        upstream = upstream_port;
        meta.tree_mask = tree_mask;
        meta.transfer_index = transfer_index;
    }

    @id(0x0100000A)
    action unknown_label() {
        meta.drop_reason = DROP_UNKNOWN_LABEL;
    }

    @id(0x02000005)
    table transfer {
        key = {
            hdr.fabric.label: exact @name("label");
        }
        actions = {
            follow_tree;
            @defaultonly unknown_label;
        }
        const default_action = unknown_label;
        counters = transfer_counter;
        size = TRANSFER_SIZE;
    }

    @id(0x0100000B)
    action set_bit(@name("bit") bit<32> port_mask) {
        meta.ingress_bit = port_mask;
    }

    @id(0x0100000C)
    action no_bit() {
    }

    // Numbers the ports 0..31 for masks; beyond that ports share a bit.
    @id(0x02000006)
    table port_bit {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
        }
        actions = {
            set_bit;
            @defaultonly no_bit;
        }
        const default_action = no_bit;
        size = PORT_BIT_SIZE;
    }

    apply {
        if (hdr.fabric.isValid() && meta.drop_reason == DROP_NONE) {
            if (hdr.fabric.version != FABRIC_VERSION) {
                meta.drop_reason = DROP_FABRIC_VERSION;
            } else if (hdr.fabric.packet_type == 0 || hdr.fabric.packet_type == FABRIC_TYPE_FETCH ||
                    hdr.fabric.packet_type > FABRIC_TYPE_PROBE) {
                meta.drop_reason = DROP_FABRIC_TYPE;
            } else if (hdr.fabric.hops >= FABRIC_HOP_LIMIT) {
                meta.drop_reason = DROP_HOP_LIMIT;
            } else if (transfer.apply().hit) {
                if (hdr.fabric.tenant != transfer_tenant) {
                    meta.drop_reason = DROP_TENANT_MISMATCH;
                } else if (standard_metadata.ingress_port == upstream) {
                    // A sender's packet goes down the tree.
                    if (hdr.fabric.packet_type == FABRIC_TYPE_NACK || hdr.fabric.packet_type == FABRIC_TYPE_DONE ||
                            hdr.fabric.packet_type == FABRIC_TYPE_REPORT) {
                        meta.drop_reason = DROP_NOT_IN_TREE;
                    } else if (tree_group == 0) {
                        meta.drop_reason = DROP_EMPTY_TREE;
                    } else {
                        meta.multicast_group = tree_group;
                    }
                } else if (hdr.fabric.packet_type == FABRIC_TYPE_DATA || hdr.fabric.packet_type == FABRIC_TYPE_REPAIR ||
                        hdr.fabric.packet_type == FABRIC_TYPE_SYNC) {
                    meta.drop_reason = DROP_NOT_FROM_UPSTREAM;
                } else {
                    // A receiver's packet goes to the one port upstream.
                    port_bit.apply();
                    if (meta.ingress_bit & meta.tree_mask == 0) {
                        meta.drop_reason = DROP_NOT_IN_TREE;
                    } else {
                        meta.output_port = upstream;
                    }
                }
                hdr.fabric.hops = hdr.fabric.hops + 1;
                // Switches have changed what it covers (RFC 768: 0 means that there is none).
                hdr.udp.checksum = 0;
            }
        }
    }
}

#endif
