// Everything that is not the fabric's: what the controller wants to see, what it sends, plain IPv4 routing over equal
// paths, and IP multicast along one tree per group.

#ifndef DDF_FORWARDING_P4
#define DDF_FORWARDING_P4

control Forwarding(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x11000001)
    @max_group_size(64) // ECMP_MAX_GROUP_SIZE: p4c takes a literal only
    action_selector(HashAlgorithm.crc32, ECMP_MEMBERS_SIZE, 16) ecmp_selector;

    // What a port has the controller look at: nobody keeps it busy, whatever he sends.
    @id(0x14000002)
    meter<bit<32>>(PUNT_METER_SIZE, MeterType.packets) punt_meter;

    @id(0x0100000E)
    action punt_to_controller(bit<8> reason) {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>)standard_metadata.ingress_port;
        hdr.packet_in.reason = reason;
        meta.cpu_traffic = 1;
        meta.output_port = PORT_CPU;
    }

    @id(0x0100000F)
    action no_punt() {
    }

    // Entries name an EtherType: without IPv4 the other keys mean nothing.
    @id(0x02000008)
    table punt {
        key = {
            meta.ether_type: ternary @name("ether_type");
            hdr.ipv4.destination: ternary @name("ipv4_destination");
            hdr.ipv4.protocol: ternary @name("ip_protocol");
        }
        actions = {
            punt_to_controller;
            @defaultonly no_punt;
        }
        const default_action = no_punt;
        size = PUNT_SIZE;
    }

    @id(0x01000010)
    action next_hop(bit<9> port, bit<48> source_mac, bit<48> destination_mac) {
        meta.output_port = port;
        hdr.ethernet.source = source_mac;
        hdr.ethernet.destination = destination_mac;
    }

    // bmv2 has no default action where there is a selector, and p4c says so of each such table whatever stands here: a miss is
    // dropped below.
    @id(0x02000009)
    table ipv4_lpm {
        key = {
            hdr.ipv4.destination: lpm @name("ipv4_destination");
            hdr.ipv4.source: selector;
            hdr.ipv4.destination: selector;
            hdr.ipv4.protocol: selector;
            meta.l4_source_port: selector;
            meta.l4_destination_port: selector;
        }
        actions = {
            next_hop;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        implementation = ecmp_selector;
        size = IPV4_LPM_SIZE;
    }

    // The group has every port of the tree beyond which somebody listens; the copy for the port that the packet came in by is pruned
    // in egress. The destination MAC address says the group already (RFC 1112, 6.4).
    @id(0x01000016)
    action replicate(bit<16> multicast_group, bit<48> source_mac) {
        meta.multicast_group = multicast_group;
        hdr.ethernet.source = source_mac;
    }

    @id(0x01000017)
    action no_members() {
        meta.drop_reason = DROP_NO_MEMBERS;
    }

    @id(0x0200000C)
    table ip_multicast {
        key = {
            hdr.ipv4.destination: exact @name("ipv4_destination");
        }
        actions = {
            replicate;
            @defaultonly no_members;
        }
        const default_action = no_members;
        size = IP_MULTICAST_SIZE;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            if (hdr.packet_out.egress_port == 0 || hdr.packet_out.egress_port >= (bit<16>)PORT_CPU) {
                meta.drop_reason = DROP_UNKNOWN_PORT;
            } else {
                meta.cpu_traffic = 1;
                meta.output_port = hdr.packet_out.egress_port[8:0];
            }
        } else if (!hdr.fabric.isValid() && meta.drop_reason == DROP_NONE) {
            meta.ether_type = hdr.object_tag.isValid() ? hdr.object_tag.next_ether_type : hdr.ethernet.ether_type;
            if (punt.apply().miss) {
                if (!hdr.ipv4.isValid()) {
                    meta.drop_reason = DROP_NOT_IP;
                } else if (hdr.ipv4.version != 4 || hdr.ipv4.header_words < 5) {
                    meta.drop_reason = DROP_PARSER_ERROR;
                } else if (hdr.ipv4.ttl == 0 || (hdr.ipv4.ttl == 1 && hdr.ipv4.destination >= IPV4_MULTICAST_FIRST)) {
                    // Nobody is told about multicast (RFC 1812, 4.3.2.7).
                    meta.drop_reason = DROP_TTL;
                } else if (hdr.ipv4.ttl == 1) {
                    // The controller answers with ICMP time exceeded (RFC 792).
                    punt_to_controller(PUNT_REASON_TTL);
                } else {
                    if (hdr.ipv4.destination >= IPV4_MULTICAST_FIRST) {
                        ip_multicast.apply();
                    } else if (!ipv4_lpm.apply().hit) {
                        meta.drop_reason = DROP_NO_ROUTE;
                    }
                    // One less in the upper byte of its word: one more in the checksum's (RFC 1624).
                    bit<32> sum = (bit<32>)hdr.ipv4.checksum + 0x0100;
                    hdr.ipv4.checksum = sum[15:0] + sum[31:16];
                    hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                }
            }
            if (meta.output_port == PORT_CPU) {
                bit<2> colour;
                punt_meter.execute_meter((bit<32>)standard_metadata.ingress_port, colour);
                if (colour == V1MODEL_METER_COLOR_RED) {
                    meta.drop_reason = DROP_PUNT_RATE;
                }
            }
        }
    }
}

#endif
