// Packets to headers and back, and the IPv4 header checksum. A parser error does not drop here: admission counts it.

#ifndef DDF_PARSER_P4
#define DDF_PARSER_P4

parser FabricParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            PORT_CPU: parse_packet_out;
            default: parse_ethernet;
        }
    }

    // What the controller sends leaves unread.
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_OBJECT_TAG: parse_object_tag;
            default: accept;
        }
    }

    state parse_object_tag {
        packet.extract(hdr.object_tag);
        transition select(hdr.object_tag.next_ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    // Behind options and in later fragments there are no ports to be read.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.header_words, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (4, 5, 0, IP_PROTOCOL_UDP): parse_udp;
            (4, 5, 0, IP_PROTOCOL_TCP): parse_tcp_ports;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.destination_port, hdr.ipv4.more_fragments) {
            (FABRIC_UDP_PORT, 0): parse_fabric;
            default: accept;
        }
    }

    state parse_tcp_ports {
        packet.extract(hdr.tcp_ports);
        transition accept;
    }

    state parse_fabric {
        packet.extract(hdr.fabric);
        transition accept;
    }
}

control FabricVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        // RFC 791; a header with options is left to its receiver.
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.header_words == 5,
            { hdr.ipv4.version, hdr.ipv4.header_words, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FabricUpdateChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        // Copies with a new destination. Forwarding adjusts the checksum for what it changes, whatever options there are.
        update_checksum(meta.rewritten == 1,
            { hdr.ipv4.version, hdr.ipv4.header_words, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,
              hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FabricDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.object_tag);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.tcp_ports);
        packet.emit(hdr.fabric);
    }
}

#endif
