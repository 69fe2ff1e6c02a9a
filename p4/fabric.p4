// The fabric on v1model: what happens to a packet, in order. Each control block is in a file of its name.

#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

#include "sizes.p4"
#include "ids.p4"
#include "headers.p4"
#include "metadata.p4"
#include "parser.p4"
#include "telemetry.p4"
#include "admission.p4"
#include "tagging.p4"
#include "transfers.p4"
#include "repair.p4"
#include "completion.p4"
#include "forwarding.p4"
#include "replicas.p4"
#include "verdict.p4"

control FabricIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    IngressTelemetry() ingress_telemetry;
    Admission() admission;
    Classification() classification;
    Transfers() transfers;
    Repair() repair;
    Completion() completion;
    Forwarding() forwarding;
    IngressVerdict() ingress_verdict;

    apply {
        ingress_telemetry.apply(hdr, meta, standard_metadata);
        admission.apply(hdr, meta, standard_metadata);
        transfers.apply(hdr, meta, standard_metadata);
        repair.apply(hdr, meta, standard_metadata);
        completion.apply(hdr, meta, standard_metadata);
        classification.apply(hdr, meta, standard_metadata);
        forwarding.apply(hdr, meta, standard_metadata);
        ingress_verdict.apply(hdr, meta, standard_metadata);
    }
}

control FabricEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Replicas() replicas;
    Tagging() tagging;
    EgressTelemetry() egress_telemetry;
    EgressVerdict() egress_verdict;

    apply {
        replicas.apply(hdr, meta, standard_metadata);
        tagging.apply(hdr, meta, standard_metadata);
        egress_telemetry.apply(hdr, meta, standard_metadata);
        egress_verdict.apply(hdr, meta, standard_metadata);
    }
}

V1Switch(FabricParser(), FabricVerifyChecksum(), FabricIngress(), FabricEgress(), FabricUpdateChecksum(),
         FabricDeparser()) main;
