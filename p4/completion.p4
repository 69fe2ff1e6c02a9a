// What receivers say about a transfer goes up once: DONE when every port of the tree behind this switch is done, REPORT when it is
// worse than the last of its epoch. Cells per transfer; each is read and written once per packet, so a stateful ALU can do it.

#ifndef DDF_COMPLETION_P4
#define DDF_COMPLETION_P4

control Completion(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // Which label the cells are about, and the ports that are done
    @id(0x16000007)
    register<bit<32>, bit<32>>(TRANSFER_SIZE) cell_label;
    @id(0x16000008)
    register<bit<32>, bit<32>>(TRANSFER_SIZE) cell_ports_done;
    // The epoch of the last DONE that went up: 256 + epoch, 0 if there was none
    @id(0x16000009)
    register<bit<32>, bit<32>>(TRANSFER_SIZE) cell_done_epoch;
    // The worst level of an epoch: 256 + epoch, 0 if there was none
    @id(0x1600000A)
    register<bit<32>, bit<32>>(TRANSFER_SIZE) cell_report_epoch;
    @id(0x1600000B)
    register<bit<32>, bit<32>>(TRANSFER_SIZE) cell_worst_level;

    bit<32> label;
    bit<32> ports_done;
    bit<32> done_epoch;
    bit<32> report_epoch;
    bit<32> worst_level;

    apply {
        if (hdr.fabric.isValid() && meta.drop_reason == DROP_NONE &&
                (hdr.fabric.packet_type == FABRIC_TYPE_DONE || hdr.fabric.packet_type == FABRIC_TYPE_REPORT)) {
            bool is_done = hdr.fabric.packet_type == FABRIC_TYPE_DONE; // otherwise a REPORT
            bit<32> cell = (bit<32>)meta.transfer_index;
            bit<32> epoch = 256 + (bit<32>)hdr.fabric.epoch;

            cell_label.read(label, cell);
            cell_ports_done.read(ports_done, cell);
            bool restarted = label != hdr.fabric.label;
            if (restarted) {
                label = hdr.fabric.label;
                ports_done = 0;
            }
            if (is_done) {
                ports_done = ports_done | meta.ingress_bit;
            }
            bool complete = ports_done & meta.tree_mask == meta.tree_mask;
            cell_label.write(cell, label);
            cell_ports_done.write(cell, ports_done);

            cell_done_epoch.read(done_epoch, cell);
            if (restarted) {
                done_epoch = 0;
            }
            if (is_done) {
                if (complete && done_epoch != epoch) {
                    done_epoch = epoch;
                } else {
                    meta.drop_reason = DROP_DONE_PENDING;
                }
            }
            cell_done_epoch.write(cell, done_epoch);

            cell_report_epoch.read(report_epoch, cell);
            cell_worst_level.read(worst_level, cell);
            if (restarted) {
                report_epoch = 0;
                worst_level = 0;
            }
            if (!is_done) {
                if (report_epoch != epoch || (bit<32>)hdr.fabric.need > worst_level) {
                    report_epoch = epoch;
                    worst_level = (bit<32>)hdr.fabric.need;
                } else {
                    meta.drop_reason = DROP_REPORT_NOT_WORSE;
                }
            }
            cell_report_epoch.write(cell, report_epoch);
            cell_worst_level.write(cell, worst_level);
        }
    }
}

#endif
