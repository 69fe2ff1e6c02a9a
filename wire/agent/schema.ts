/**
 * What host agents and the controller say to each other: one bidirectional gRPC stream per agent, opened by the agent. The controller asks,
 * the agent replies by request id; statuses and holdings flow up unasked. TypeScript types are generated into messages.ts.
 */
export const AGENT_SCHEMA = `
syntax = "proto3";
package ddf.agent.v1;

service AgentControl {
  // The first message up is hello, the first one down welcome.
  rpc Attach(stream FromAgent) returns (stream ToAgent);
}

message FromAgent {
  oneof body {
    Hello hello = 1;
    Reply reply = 2;
    TransferStatus transfer_status = 3;
    // A version that the agent has just proved by hash.
    HeldVersion version_held = 4;
    ObjectVersion version_dropped = 5;
  }
}

message ToAgent {
  oneof body {
    Welcome welcome = 1;
    Request request = 2;
    // The stream ends after this: another incarnation of the same agent has attached, or the name is unknown.
    AgentError refused = 3;
  }
}

enum AgentKind {
  AGENT_KIND_UNSPECIFIED = 0;
  MEMORY_NODE = 1;
  GPU_SERVER = 2;
}

message Hello {
  // The host's name in the topology.
  string agent_id = 1;
  AgentKind kind = 2;
  // Grows with every start of the agent: milliseconds since 1970 at its start.
  uint64 incarnation = 3;
  // Dotted address on the fabric and the UDP port of its receiver.
  string fabric_ip = 4;
  uint32 receiver_port = 5;
  // Where holders are read from by range when multicast is no use.
  string range_url = 6;
  repeated HeldVersion held = 7;
  // The version that consumers on this server read now, per object.
  repeated ObjectVersion active = 8;
}

message Welcome {
  string controller_id = 1;
}

message ObjectVersion {
  uint64 object_id = 1;
  uint32 version = 2;
}

message HeldVersion {
  uint64 object_id = 1;
  uint32 version = 2;
  uint64 size_bytes = 3;
  // SHA-256 of the manifest's body: proves size, chunk size and every chunk.
  bytes root_sha256 = 4;
}

// What travels in a transfer: a full image (base_version 0) or a delta.
message Payload {
  uint64 object_id = 1;
  uint32 version = 2;
  uint32 base_version = 3;
  uint64 size_bytes = 4;
  // The manifest travels as the first blocks; this proves it.
  uint32 manifest_bytes = 5;
  bytes manifest_sha256 = 6;
}

message Request {
  uint64 request_id = 1;
  oneof body {
    ImportVersion import_version = 2;
    MakeDelta make_delta = 3;
    PrepareReceive prepare_receive = 4;
    StartSend start_send = 5;
    EndTransfer end_transfer = 6;
    ActivateVersion activate_version = 7;
    ObjectVersion drop_version = 8;
    UpdateSend update_send = 9;
    AllowRange allow_range = 10;
    UpdateReceive update_receive = 11;
  }
}

message Reply {
  uint64 request_id = 1;
  AgentError error = 2;
  // Set when there is no error and the request has a result.
  oneof body {
    HeldVersion imported = 3;
    Payload payload = 4;
  }
}

message AgentError {
  // One of the codes in docs/errors.md.
  string code = 1;
  string message = 2;
  string where = 3;
  string remedy = 4;
}

// Reads a file into the agent's store as a version: replies imported, after the version is stored and hashed.
message ImportVersion {
  uint64 object_id = 1;
  uint32 version = 2;
  string path = 3;
}

// Makes (or finds) the payload that brings base_version to version; base_version 0 asks for the full image's payload. Replies payload.
message MakeDelta {
  uint64 object_id = 1;
  uint32 base_version = 2;
  uint32 version = 3;
}

message Holder {
  string range_url = 1;
  // Sent as a bearer token.
  string token = 2;
}

// To a holder: range reads of this payload (base_version 0: the full image) that come with this bearer token are served from now on.
message AllowRange {
  string token = 1;
  uint64 object_id = 2;
  uint32 version = 3;
  uint32 base_version = 4;
  // The token is good for this long. 0: it is withdrawn at once.
  uint32 ttl_ms = 5;
}

// One of the parts that a payload is sent in: over a tree of its own, perhaps by another sender. Block b belongs to stripe b mod count.
message Stripe {
  // What its packets are labelled with.
  uint32 label = 1;
  uint32 index = 2;
  uint32 count = 3;
  // Whom repair requests are addressed to.
  string sender_ip = 4;
  // The controller's estimate for the path, a start value for the measured one.
  uint32 rtt_us = 5;
  // False where receivers share a bit of the tree masks: then nobody sends DONE or counts on it.
  bool send_done = 6;
}

message PrepareReceive {
  // Names what is received in requests and statuses: a label that no other payload has, that of the first stripe where there is one.
  uint32 label = 1;
  Payload payload = 2;
  uint32 segment_bytes = 3;
  // Who sends which part. None: nobody sends, everything is read from the holders at once.
  repeated Stripe stripes = 4;
  // What the result must be: the root of the full image, also when the payload is a delta.
  bytes target_root_sha256 = 5;
  // Holders of this payload for the unicast lane, in order of preference.
  repeated Holder holders = 6;
  // From now on; what is missing then is read by unicast. 0: no deadline.
  uint32 deadline_ms = 7;
  // The switches' elimination interval: retries stay above it.
  uint32 elimination_us = 8;
}

// To a receiver: these are the stripes from now on. One whose label is new takes the place of the one with its index; blocks of an index
// that is not among them are read by unicast. A label that the agent does not know is no error.
message UpdateReceive {
  uint32 label = 1;
  repeated Stripe stripes = 2;
}

message StartSend {
  uint32 label = 1;
  Payload payload = 2;
  uint32 segment_bytes = 3;
  // Where the datagrams are addressed to; the switches replicate by label and rewrite every copy.
  string destination_ip = 4;
  // Payload bits per second of datagrams on the wire.
  uint64 rate_floor_bits_per_second = 5;
  uint64 rate_ceiling_bits_per_second = 6;
  uint32 rtt_us = 7;
  // First block to send; a restarted sender continues under a new label.
  uint32 first_block = 8;
  // After this many milliseconds without completion the sender closes the transfer. 0: never.
  uint32 deadline_ms = 9;
  // Whether a DONE from the tree means that every receiver is complete.
  bool expect_done = 10;
  // The part of the payload that is sent; count 0 is all of it.
  uint32 stripe_index = 11;
  uint32 stripe_count = 12;
  // Share of the packets, in millionths, that the worst receiver lost on these paths before: how much parity to send ahead. 0: unknown.
  uint32 expected_loss_ppm = 13;
  // Receivers that answer probes: path MTU and round trip are measured before the first block. 0: no probes.
  uint32 probe_receivers = 14;
}

message UpdateSend {
  uint32 label = 1;
  uint64 rate_floor_bits_per_second = 2;
  uint64 rate_ceiling_bits_per_second = 3;
}

// Goes to the sender and to the receivers of a transfer. A label that the agent does not know is no error: it is ended already.
message EndTransfer {
  uint32 label = 1;
  // true: complete, the sender says so to the tree with closed SYNCs and keeps nothing; false: abort, receivers keep verified chunks.
  bool complete = 2;
}

message ActivateVersion {
  uint64 object_id = 1;
  uint32 version = 2;
}

enum TransferState {
  TRANSFER_STATE_UNSPECIFIED = 0;
  SENDING = 1;
  // The sender: everything sent at least once; repairs may follow.
  SENT = 2;
  RECEIVING = 3;
  // Every chunk of the payload is verified; a delta is being applied.
  RECONSTRUCTING = 4;
  // The target version is stored and its root hash is right.
  VERIFIED = 5;
  // The sender, after the last closed SYNC.
  CLOSED = 6;
  FAILED = 7;
}

message TransferStatus {
  uint32 label = 1;
  TransferState state = 2;
  // Sender: payload bytes up to which its stripe was sent at least once. Receiver: payload bytes in verified chunks.
  uint64 bytes_done = 3;
  AgentError error = 4;
  SenderCounters sender = 5;
  ReceiverCounters receiver = 6;
  // Of a sender: the largest segment size, up to the transfer's, that its probes brought to every receiver; 0 before that is known. If it is
  // smaller than the transfer's, the sender has failed for that.
  uint32 path_segment_bytes = 7;
}

message SenderCounters {
  uint64 data_packets = 1;
  uint64 repair_packets = 2;
  uint64 sync_packets = 3;
  // Bytes of Ethernet frames handed to the network, without FCS.
  uint64 frame_bytes = 4;
  uint64 nacks_received = 5;
  uint64 nacks_ignored = 6;
  uint64 reports_received = 7;
  bool done_received = 8;
  uint64 rate_bits_per_second = 9;
  uint64 packets_rejected = 10;
  // Parity symbols sent before anybody asked; among repair_packets.
  uint64 parity_ahead_packets = 11;
  // To the farthest receiver and back, measured by probes; 0 before that.
  uint32 rtt_us = 12;
  // Probes sent, and answers to them by all receivers.
  uint64 probe_packets = 13;
  uint64 probe_answers = 14;
  // DONEs that nobody waited for, or not any more.
  uint64 dones_ignored = 20;
  // Of packets_rejected, by the first check that they did not pass.
  uint64 rejected_length = 21;
  uint64 rejected_version = 22;
  uint64 rejected_type = 23;
  uint64 rejected_symbol = 24;
  uint64 rejected_crc = 25;
  uint64 rejected_label = 26;
  uint64 rejected_object = 27;
  uint64 rejected_block = 28;
}

message ReceiverCounters {
  uint64 data_packets = 1;
  uint64 repair_packets = 2;
  // Repair symbols that arrived for blocks that were complete.
  uint64 repair_unneeded = 3;
  uint64 duplicates = 4;
  // Source symbols of this receiver's that never came as DATA.
  uint64 lost_symbols = 5;
  uint64 nacks_sent = 6;
  uint64 blocks_decoded = 7;
  uint64 packets_rejected = 8;
  uint64 chunks_verified = 9;
  uint64 chunks_failed = 10;
  uint64 unicast_bytes = 11;
  uint64 unicast_requests = 12;
  uint64 reports_sent = 13;
  // Measured from NACK to repair; the estimate before that.
  uint32 rtt_us = 14;
  uint64 probe_packets = 18;
  uint64 sync_packets = 19;
  // Well-formed ones after the stream had ended for this receiver.
  uint64 packets_late = 20;
  // Of packets_rejected, by the first check that they did not pass.
  uint64 rejected_length = 21;
  uint64 rejected_version = 22;
  uint64 rejected_type = 23;
  uint64 rejected_symbol = 24;
  uint64 rejected_crc = 25;
  uint64 rejected_label = 26;
  uint64 rejected_object = 27;
  uint64 rejected_block = 28;
}
`;
