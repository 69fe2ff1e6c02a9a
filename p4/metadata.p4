// What one control block tells a later one. All of it is zero when a packet comes in.

#ifndef DDF_METADATA_P4
#define DDF_METADATA_P4

struct metadata_t {
    // DROP_NONE while nothing speaks against the packet; the blocks after the one that sets it pass it by.
    bit<8> drop_reason;

    // How it came in
    bit<1> from_host;
    bit<1> came_tagged;
    bit<4> kind; // KIND_* or the fabric type

    // From the CPU or to it: leaves as it is, and is no traffic of the port that it leaves by.
    bit<1> cpu_traffic;

    // Where it goes: to a multicast group if there is one, otherwise to a port.
    bit<16> multicast_group;
    bit<9> output_port;

    // The transfer that a fabric packet is part of
    bit<16> transfer_index;
    bit<32> tree_mask;
    bit<32> ingress_bit; // one bit: the port that an answer of a receiver came in by
    bit<32> repair_mask; // the ports that a REPAIR leaves by

    // Ordinary IPv4 packets
    bit<16> ether_type; // behind the tag, if there is one
    bit<16> l4_source_port;
    bit<16> l4_destination_port;

    // The tag that an ordinary packet gets where it enters the fabric
    bit<1> classified;
    bit<64> object_id;
    bit<32> object_version;
    bit<8> traffic_class;

    // Egress
    bit<1> to_host;
    bit<32> egress_bit;
    bit<1> rewritten;
}

#endif
