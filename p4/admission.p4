// Who may send what: the first switch checks a host's packets, so that the others need not.

#ifndef DDF_ADMISSION_P4
#define DDF_ADMISSION_P4

control Admission(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @id(0x14000001)
    meter<bit<32>>(CONTROL_METER_SIZE, MeterType.packets) control_meter;

    @id(0x01000001)
    action host_port() {
        meta.from_host = 1;
    }

    @id(0x01000002)
    action fabric_port() {
    }

    @id(0x01000003)
    action unknown_port() {
        meta.drop_reason = DROP_UNKNOWN_PORT;
    }

    @id(0x02000001)
    table port_role {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
        }
        actions = {
            host_port;
            fabric_port;
            @defaultonly unknown_port;
        }
        const default_action = unknown_port;
        size = PORT_ROLE_SIZE;
    }

    @id(0x01000004)
    action permit() {
    }

    @id(0x01000005)
    action deny() {
        meta.drop_reason = DROP_NOT_ADMITTED;
    }

    @id(0x02000002)
    table admission {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
            hdr.fabric.tenant: exact @name("tenant");
            hdr.fabric.packet_type: exact @name("fabric_type");
        }
        actions = {
            permit;
            deny;
        }
        const default_action = deny;
        size = ADMISSION_SIZE;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            meta.drop_reason = DROP_PARSER_ERROR;
        } else if (standard_metadata.checksum_error == 1) {
            meta.drop_reason = DROP_IPV4_CHECKSUM;
        } else if (!hdr.packet_out.isValid()) {
            port_role.apply();
            if (meta.from_host == 1) {
                if (hdr.object_tag.isValid()) {
                    meta.drop_reason = DROP_TAG_FROM_HOST;
                } else if (hdr.fabric.isValid()) {
                    admission.apply();
                    if (meta.drop_reason == DROP_NONE && (hdr.fabric.packet_type == FABRIC_TYPE_NACK ||
                            hdr.fabric.packet_type == FABRIC_TYPE_DONE ||
                            hdr.fabric.packet_type == FABRIC_TYPE_REPORT)) {
                        bit<2> colour;
                        control_meter.execute_meter((bit<32>)standard_metadata.ingress_port, colour);
                        if (colour == V1MODEL_METER_COLOR_RED) {
                            meta.drop_reason = DROP_CONTROL_RATE;
                        }
                    }
                } else if (hdr.udp.isValid()) {
                    // Whole packets to the fabric's own port have a fabric header and are not here.
                    if (hdr.udp.destination_port == FABRIC_UDP_PORT ||
                            (hdr.udp.destination_port >= RECEIVER_UDP_PORT_FIRST &&
                             hdr.udp.destination_port <= RECEIVER_UDP_PORT_LAST)) {
                        meta.drop_reason = hdr.ipv4.more_fragments == 1 ? DROP_FRAGMENT : DROP_RECEIVER_PORT_RANGE;
                    }
                } else if (hdr.ipv4.isValid() && hdr.ipv4.protocol == IP_PROTOCOL_UDP && hdr.ipv4.header_words > 5) {
                    // The ports are behind the options, where nobody checks them. A later fragment is harmless: without the
                    // first one, which has the ports, its receiver makes nothing of it.
                    meta.drop_reason = DROP_IP_OPTIONS;
                }
            }
        }
    }
}

#endif
