// NACK elimination and the repair mask (docs/protocol.md). A slot is three pairs of registers with the same index, each read and
// written once per packet in the order A, B, C; B and C depend on what A said. So a stateful ALU can do the same.

#ifndef DDF_REPAIR_P4
#define DDF_REPAIR_P4

control Repair(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // A: whose slot it is, and when that was last sure
    @id(0x16000001)
    register<bit<32>, bit<32>>(REPAIR_SLOTS) slot_key;
    @id(0x16000002)
    register<bit<32>, bit<32>>(REPAIR_SLOTS) slot_touched;
    // B: the largest need that went up, and when
    @id(0x16000003)
    register<bit<32>, bit<32>>(REPAIR_SLOTS) slot_need;
    @id(0x16000004)
    register<bit<32>, bit<32>>(REPAIR_SLOTS) slot_forwarded;
    // C: the ports that asked, and those that asked for another block while this one had the slot
    @id(0x16000005)
    register<bit<32>, bit<32>>(REPAIR_SLOTS) slot_asked;
    @id(0x16000006)
    register<bit<32>, bit<32>>(REPAIR_SLOTS) slot_waiting;

    bit<32> elimination_ticks = 0;
    bit<32> stale_ticks = 0;
    bit<32> grace_ticks = 0;

    @id(0x0100000D)
    action set_intervals(bit<32> elimination, bit<32> stale, bit<32> grace) {
        elimination_ticks = elimination;
        stale_ticks = stale;
        grace_ticks = grace;
    }

    // Keyless: the controller changes the default action. In ticks; grace is at most stale, all are below half the wrap.
    @id(0x02000007)
    table repair_intervals {
        actions = {
            @defaultonly set_intervals;
        }
        default_action = set_intervals(REPAIR_ELIMINATION_DEFAULT_US / REPAIR_TICK_US,
            REPAIR_STALE_DEFAULT_US / REPAIR_TICK_US, REPAIR_GRACE_DEFAULT_US / REPAIR_TICK_US);
        size = 1;
    }

    bit<32> slot;
    bit<32> own_key;
    bit<32> now;
    bit<32> key;
    bit<32> touched;
    bit<32> need;
    bit<32> forwarded;
    bit<32> asked;
    bit<32> waiting;

    apply {
        if (hdr.fabric.isValid() && meta.drop_reason == DROP_NONE &&
                (hdr.fabric.packet_type == FABRIC_TYPE_NACK || hdr.fabric.packet_type == FABRIC_TYPE_REPAIR)) {
            bool is_nack = hdr.fabric.packet_type == FABRIC_TYPE_NACK; // otherwise a REPAIR
            if (is_nack && hdr.fabric.need == 0) {
                meta.drop_reason = DROP_NOTHING_NEEDED;
            } else {
                repair_intervals.apply();
                hash(slot, HashAlgorithm.crc16, 32w0, { hdr.fabric.label, hdr.fabric.block }, (bit<32>)REPAIR_SLOTS);
                // 1 .. 2^32-1: a register that was lost or never used, all zero, is nobody's.
                hash(own_key, HashAlgorithm.crc32, 32w1, { hdr.fabric.label, hdr.fabric.block }, 32w0xFFFFFFFF);
                // Ticks of REPAIR_TICK_US = 2^4 microseconds. They wrap, so that only differences mean something; a clock
                // does not run backwards, so that a difference beyond half the wrap is an age too.
                now = standard_metadata.ingress_global_timestamp[35:4];

                slot_key.read(key, slot);
                slot_touched.read(touched, slot);
                bool mine = key == own_key;
                // A slot that was never used is free; a stateful ALU gets that from the register's initial value.
                bool old = key == 0 || now - touched > stale_ticks;
                if (is_nack) {
                    if (mine || old) {
                        key = own_key;
                        touched = now;
                    }
                } else if (mine) {
                    // Others may claim the slot soon, not before stragglers have asked.
                    touched = now - (stale_ticks - grace_ticks);
                }
                slot_key.write(slot, key);
                slot_touched.write(slot, touched);

                slot_need.read(need, slot);
                slot_forwarded.read(forwarded, slot);
                bit<8> marks = FABRIC_MARK_ANEW;
                if (is_nack) {
                    if (mine && !old && now - forwarded <= elimination_ticks) {
                        // The same question is pending upstream: only a larger need goes up, and it extends the answer.
                        marks = 0;
                        if ((bit<32>)hdr.fabric.need > need) {
                            need = (bit<32>)hdr.fabric.need;
                            forwarded = now;
                        } else {
                            meta.drop_reason = DROP_ELIMINATED;
                        }
                    } else if (mine || old) {
                        need = (bit<32>)hdr.fabric.need;
                        forwarded = now;
                    }
                    hdr.fabric.marks = marks;
                } else if (mine) {
                    // From the first symbol on the question is being answered: the next NACK goes up.
                    forwarded = now - elimination_ticks - 1;
                }
                slot_need.write(slot, need);
                slot_forwarded.write(slot, forwarded);

                slot_asked.read(asked, slot);
                slot_waiting.read(waiting, slot);
                if (is_nack) {
                    if (mine) {
                        asked = asked | meta.ingress_bit;
                    } else if (old) {
                        asked = waiting | meta.ingress_bit;
                        waiting = 0;
                    } else {
                        waiting = waiting | meta.ingress_bit;
                    }
                } else {
                    meta.repair_mask = mine ? asked : 32w0xFFFFFFFF;
                }
                slot_asked.write(slot, asked);
                slot_waiting.write(slot, waiting);
            }
        }
    }
}

#endif
