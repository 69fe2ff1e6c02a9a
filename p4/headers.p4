// Everything that can be on a wire of the fabric, in wire order.

#ifndef DDF_HEADERS_P4
#define DDF_HEADERS_P4

@controller_header("packet_in")
header packet_in_header_t {
    bit<16> ingress_port;
    bit<8> reason; // PUNT_REASON_*
}

@controller_header("packet_out")
header packet_out_header_t {
    bit<16> egress_port;
}

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> ether_type;
}

// Added by the first switch, removed by the last one. objectId = tenant | object_serial.
header object_tag_t {
    bit<16> next_ether_type;
    bit<16> tenant;
    bit<48> object_serial;
    bit<32> object_version;
    bit<16> ingress_switch;
    bit<8> traffic_class;
    bit<8> hops;
}

header ipv4_t {
    bit<4> version;
    bit<4> header_words;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<2> flags; // reserved, don't fragment
    bit<1> more_fragments;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header udp_t {
    bit<16> source_port;
    bit<16> destination_port;
    bit<16> length;
    bit<16> checksum;
}

// All of TCP that flows are told apart by; the rest is payload.
header tcp_ports_t {
    bit<16> source_port;
    bit<16> destination_port;
}

// 40 bytes after UDP. crc32 covers the first 32 of them and the payload, so switches may change the last four.
header fabric_t {
    bit<4> version;
    bit<4> packet_type;
    bit<8> flags;
    bit<16> payload_length;
    bit<32> label;
    bit<16> tenant;
    bit<48> object_serial;
    bit<32> object_version;
    bit<32> base_version;
    bit<32> block;
    bit<8> symbol;
    bit<8> source_symbols;
    bit<8> need;
    bit<8> epoch;
    bit<32> crc32;
    bit<8> marks;
    bit<8> queue_level;
    bit<8> hops;
    bit<8> reserved;
}

struct headers_t {
    packet_in_header_t packet_in;
    packet_out_header_t packet_out;
    ethernet_t ethernet;
    object_tag_t object_tag;
    ipv4_t ipv4;
    udp_t udp;
    tcp_ports_t tcp_ports;
    fabric_t fabric;
}

#endif
