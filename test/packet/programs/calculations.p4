// What is computed of a packet: hashes by every algorithm over fields that are not whole bytes, with bases and maxima; checksums over
// fields and payload; registers; errors of the parser; arithmetic at the edges. Ingress writes its results into the packet.
#include <core.p4>
#include <v1model.p4>

header input_t {
    bit<4>  kind;
    bit<9>  a;
    bit<7>  b;
    bit<12> c;
    bit<48> d;
    bit<3>  e;
    bit<5>  f;
    bit<32> base;
    bit<32> max;
    int<8>  g;
    int<8>  h;
}

header tail_t {
    bit<16> sum;
    bit<16> rest;
}

header wide_t {
    bit<128> value;
}

header output_t {
    bit<16> crc16;
    bit<32> crc32;
    bit<16> csum16;
    bit<16> xor16;
    bit<64> identity;
    bit<16> crc16_custom;
    bit<32> crc32_custom;
    bit<32> ranged;
    bit<32> register_before;
    bit<8>  parser_error;
    bit<8>  checksum_error;
    bit<16> packet_length;
    bit<8>  saturated;
    int<8>  signed_saturated;
    int<8>  product;
    bit<8>  shifted;
    int<8>  arithmetic_shift;
    bit<16> flags;
    bit<128> wide;
}

struct headers_t {
    output_t output;
    input_t  input;
    tail_t   tail;
    wide_t   wide;
}

struct metadata_t {
    bit<1> has_sum;
}

error {
    TooMuch
}

parser CalculationsParser(packet_in packet, out headers_t headers, inout metadata_t meta,
                          inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.input);
        verify(headers.input.b != 0x7f, error.TooMuch);
        transition select(headers.input.kind, headers.input.a) {
            (1, _): parse_tail;
            (2, 0x100 &&& 0x100): parse_wide;
            (2, _): ahead;
            (3, 5 .. 200): parse_wide;
            (0xf, _): skip;
            (0 .. 14, _): accept;
        }
    }

    state parse_tail {
        packet.extract(headers.tail);
        meta.has_sum = 1;
        transition select(headers.tail.rest) {
            0x0000 &&& 0x00ff: parse_wide;
            default: accept;
        }
    }

    state ahead {
        transition select(packet.lookahead<bit<20>>()) {
            0xabcde: parse_wide;
            default: accept;
        }
    }

    state skip {
        packet.advance(16);
        transition parse_wide;
    }

    state parse_wide {
        packet.extract(headers.wide);
        transition accept;
    }
}

control CalculationsVerify(inout headers_t headers, inout metadata_t meta) {
    apply {
        verify_checksum_with_payload(meta.has_sum == 1,
            { headers.input.d, headers.input.a, headers.input.b, headers.tail.rest }, headers.tail.sum,
            HashAlgorithm.csum16);
    }
}

control CalculationsIngress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(16) cells;

    apply {
        standard.egress_spec = 1;
        if (headers.input.isValid()) {
            headers.output.setValid();
            hash(headers.output.crc16, HashAlgorithm.crc16, 16w0,
                { headers.input.a, headers.input.b, headers.input.c, headers.input.d, headers.input.f }, 32w0x10000);
            hash(headers.output.crc32, HashAlgorithm.crc32, 32w0,
                { headers.input.a, headers.input.b, headers.input.c, headers.input.d, headers.input.g }, 64w0x100000000);
            hash(headers.output.csum16, HashAlgorithm.csum16, 16w0,
                { headers.input.a, headers.input.b, headers.input.c, headers.input.d, headers.input.e }, 32w0x10000);
            hash(headers.output.xor16, HashAlgorithm.xor16, 16w0,
                { headers.input.a, headers.input.b, headers.input.c, headers.input.d, headers.input.e }, 32w0x10000);
            hash(headers.output.identity, HashAlgorithm.identity, 64w0,
                { headers.input.a, headers.input.b, headers.input.c, headers.input.f }, 64w0xffffffffffffffff);
            hash(headers.output.crc16_custom, HashAlgorithm.crc16_custom, 16w0,
                { headers.input.d, headers.input.a }, 32w0x10000);
            hash(headers.output.crc32_custom, HashAlgorithm.crc32_custom, 32w0,
                { headers.input.d, headers.input.a }, 64w0x100000000);
            hash(headers.output.ranged, HashAlgorithm.crc32, headers.input.base,
                { headers.input.d, 16w0x1234, headers.input.c }, headers.input.max);
            bit<32> cell = (bit<32>)headers.input.e;
            cells.read(headers.output.register_before, cell);
            cells.write(cell, headers.output.register_before + headers.input.base);
            headers.output.parser_error = 9;
            if (standard.parser_error == error.NoError) {
                headers.output.parser_error = 0;
            } else if (standard.parser_error == error.PacketTooShort) {
                headers.output.parser_error = 1;
            } else if (standard.parser_error == error.NoMatch) {
                headers.output.parser_error = 2;
            } else if (standard.parser_error == error.TooMuch) {
                headers.output.parser_error = 3;
            }
            headers.output.checksum_error = (bit<8>)standard.checksum_error;
            headers.output.packet_length = (bit<16>)standard.packet_length;
            headers.output.saturated = (bit<8>)headers.input.f |+| (bit<8>)headers.input.c;
            headers.output.signed_saturated = headers.input.g |-| headers.input.h;
            headers.output.product = headers.input.g * headers.input.h;
            headers.output.shifted = (bit<8>)headers.input.a << (bit<8>)headers.input.e;
            headers.output.arithmetic_shift = headers.input.g >> (bit<8>)headers.input.e;
            headers.output.flags = headers.input.g < headers.input.h ? 16w1 : 16w0;
            if ((bit<16>)(bit<8>)headers.input.g > 16w127 && (int<16>)headers.input.h < 0) {
                headers.output.flags = headers.output.flags | 16w2;
            }
            if (headers.input.a ++ headers.input.b == headers.input.c[11:0] ++ headers.input.f[3:0]) {
                headers.output.flags = headers.output.flags | 16w4;
            }
            headers.output.flags[15:8] = headers.input.d[23:16];
            headers.output.wide = 0;
            if (headers.wide.isValid()) {
                hash(headers.output.crc32_custom, HashAlgorithm.crc32_custom, 32w7,
                    { headers.wide.value, headers.input.a }, 64w0xfffffff0);
                headers.output.wide = (headers.wide.value << (bit<8>)headers.input.b) - (bit<128>)headers.input.d;
                headers.wide.value = headers.wide.value * 3 + (~headers.wide.value[127:64] ++ 64w0);
            }
        }
    }
}

control CalculationsEgress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control CalculationsUpdate(inout headers_t headers, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(meta.has_sum == 1,
            { headers.input.d, headers.input.c, headers.input.e, headers.input.a, headers.tail.rest }, headers.tail.sum,
            HashAlgorithm.csum16);
    }
}

control CalculationsDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.output);
        packet.emit(headers.input);
        packet.emit(headers.tail);
        packet.emit(headers.wide);
    }
}

V1Switch(CalculationsParser(), CalculationsVerify(), CalculationsIngress(), CalculationsEgress(), CalculationsUpdate(),
         CalculationsDeparser()) main;
