// Egress: which copies leave, and as what. None goes back where its packet came from. The last switch addresses each copy of a
// fabric packet to its receiver, which is a plain UDP socket; one to a sender (instance 0) finds it under the fabric's own UDP port.

#ifndef DDF_REPLICAS_P4
#define DDF_REPLICAS_P4

control Replicas(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x01000011)
    action to_host(@name("bit") bit<32> port_mask) {
        meta.to_host = 1;
        meta.egress_bit = port_mask;
    }

    @id(0x01000012)
    action to_fabric(@name("bit") bit<32> port_mask) {
        meta.egress_bit = port_mask;
    }

    @id(0x01000013)
    action neither() {
        meta.drop_reason = DROP_UNKNOWN_PORT;
    }

    @id(0x0200000A)
    table egress_role {
        key = {
            standard_metadata.egress_port: exact @name("egress_port");
        }
        actions = {
            to_host;
            to_fabric;
            @defaultonly neither;
        }
        const default_action = neither;
        size = EGRESS_ROLE_SIZE;
    }

    @id(0x01000014)
    action rewrite(bit<48> destination_mac, bit<32> destination_ip, bit<16> destination_udp_port) {
        hdr.ethernet.destination = destination_mac;
        hdr.ipv4.destination = destination_ip;
        hdr.udp.destination_port = destination_udp_port;
        meta.rewritten = 1;
    }

    @id(0x01000015)
    action no_receiver() {
        meta.drop_reason = DROP_NO_RECEIVER;
    }

    @id(0x0200000B)
    table replica_rewrite {
        key = {
            standard_metadata.egress_port: exact @name("egress_port");
            standard_metadata.egress_rid: exact @name("instance");
        }
        actions = {
            rewrite;
            @defaultonly no_receiver;
        }
        const default_action = no_receiver;
        size = REPLICA_REWRITE_SIZE;
    }

    apply {
        if (meta.cpu_traffic == 0) {
            egress_role.apply();
            if (meta.drop_reason == DROP_NONE && meta.multicast_group != 0 &&
                    standard_metadata.egress_port == standard_metadata.ingress_port) {
                meta.drop_reason = DROP_PRUNED_INGRESS_PORT;
            } else if (hdr.fabric.isValid() && meta.drop_reason == DROP_NONE) {
                if (hdr.fabric.packet_type == FABRIC_TYPE_REPAIR && meta.repair_mask & meta.egress_bit == 0) {
                    meta.drop_reason = DROP_PRUNED_NOT_ASKED;
                } else if (meta.to_host == 1) {
                    replica_rewrite.apply();
                }
            }
        }
    }
}

#endif
