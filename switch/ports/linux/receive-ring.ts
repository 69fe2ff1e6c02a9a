import { MSG_DONTWAIT } from '../../../base/linux/abi.ts';
import type { Libc } from '../../../base/linux/libc.ts';
import { FrameMemory, type FrameSink, handOver } from '../../runtime/frames.ts';
import type { Frame } from '../port.ts';
import {
  PACKET_RX_RING,
  SLOT_ALIGNMENT,
  SLOT_CAPTURED,
  SLOT_HEADER_BYTES,
  SLOT_LENGTH,
  SLOT_MAC_OFFSET,
  SLOT_VLAN_TCI,
  SLOT_VLAN_TPID,
  SOL_PACKET,
  TP_STATUS_COPY,
  TP_STATUS_KERNEL,
  TP_STATUS_USER,
  TP_STATUS_VLAN_TPID_VALID,
  TP_STATUS_VLAN_VALID,
  VNET_GSO_NONE,
  VNET_HEADER_BYTES,
  VNET_NEEDS_CHECKSUM,
} from './abi.ts';
import { completeChecksum } from './checksum.ts';
import { segmentFrame } from './segmentation.ts';
import { systemError } from './system-error.ts';

/** What one port's ring takes of the kernel's memory, about. */
const RING_BYTES = 4 * 1024 * 1024;
const BLOCK_BYTES = 256 * 1024;
const MIN_SLOTS = 256;
const MAX_SLOTS = 2048;
/** What the kernel leaves free before a frame: the slot's header, and room for the virtio-net header and a link header of up to 16 bytes. */
const HEADROOM_BYTES = alignUp(SLOT_HEADER_BYTES + 16) + VNET_HEADER_BYTES;
const VLAN_TAG_BYTES = 4;
/** Of these, what is free when the virtio-net header has been read and the tag is back: more than the object tag takes. */
const FREE_BYTES = HEADROOM_BYTES - SLOT_HEADER_BYTES - 14 - VLAN_TAG_BYTES;
const MAC_BYTES = 12;
const ETHERTYPE_VLAN = 0x8100;
/** A packet of 64 KiB with its link header: the largest that a local sender leaves to its NIC to cut. */
const LARGEST_PACKET_BYTES = 65536 + 64;

export interface ReceiveRingStatistics {
  /** Packets of local senders that were cut into frames, as their NIC would have done. */
  segmented: number;
  /** Frames whose transport checksum was completed here. */
  checksumsCompleted: number;
  /** Frames dropped: larger than what the ring and the socket's queue could take, or with headers that make no sense. */
  unusable: number;
}

/**
 * The receive ring of a packet socket (TPACKET_V2): the kernel writes frames into shared memory, no system call reads them.
 *
 * Frames are handed out as they came on a wire: VLAN tags back in place, checksums complete, packets that the sender left to its NIC cut. They lie in
 * the ring and are good until {@link release}.
 */
export class ReceiveRing {
  readonly statistics: ReceiveRingStatistics = { segmented: 0, checksumsCompleted: 0, unusable: 0 };
  /** Where {@link buffer} is in memory: what is sent from it need not be copied. */
  readonly address: number;
  readonly buffer: ArrayBuffer;
  readonly slotCount: number;
  private readonly libc: Libc;
  private readonly fd: number;
  private readonly bytes: Uint8Array;
  private readonly memory: FrameMemory;
  private readonly halves: Uint16Array;
  private readonly words: Int32Array;
  /** Offsets of the slots in words. */
  private readonly slots: Uint32Array;
  private readonly large = new Uint8Array(VNET_HEADER_BYTES + LARGEST_PACKET_BYTES);
  private readonly largeHalves = new DataView(this.large.buffer);
  /** The next slot to look at, and how many before it are still ours. */
  private next = 0;
  private held = 0;

  /** For a socket that has PACKET_VERSION and PACKET_VNET_HDR set. Throws PORT_UNAVAILABLE. */
  constructor(libc: Libc, fd: number, name: string, mtuBytes: number) {
    this.libc = libc;
    this.fd = fd;
    const slotBytes = alignUp(HEADROOM_BYTES + mtuBytes + VLAN_TAG_BYTES);
    const blockBytes = Math.max(BLOCK_BYTES, alignUp(slotBytes, 4096));
    const slotsPerBlock = Math.floor(blockBytes / slotBytes);
    const wanted = Math.min(MAX_SLOTS, Math.max(MIN_SLOTS, Math.floor(RING_BYTES / slotBytes)));
    const blocks = Math.ceil(wanted / slotsPerBlock);
    this.slotCount = blocks * slotsPerBlock;
    const request = new Uint8Array(new Uint32Array([blockBytes, blocks, slotBytes, this.slotCount]).buffer);
    if (libc.setsockopt(fd, SOL_PACKET, PACKET_RX_RING, request, request.length) < 0)
      throw systemError(libc, 'make a receive ring', name);
    const mapped = libc.mapRing(fd, blocks * blockBytes);
    if (mapped === undefined) throw systemError(libc, 'map the receive ring', name);
    this.buffer = mapped.buffer;
    this.address = mapped.address;
    this.bytes = new Uint8Array(this.buffer);
    this.memory = new FrameMemory(this.bytes, FREE_BYTES);
    this.halves = new Uint16Array(this.buffer);
    this.words = new Int32Array(this.buffer);
    this.slots = Uint32Array.from(
      { length: this.slotCount },
      (_, i) => (Math.floor(i / slotsPerBlock) * blockBytes + (i % slotsPerBlock) * slotBytes) / 4,
    );
  }

  /** Hands out what has arrived, from at most `budget` slots. Returns how many it took. */
  receive(budget: number, deliver: FrameSink): number {
    const limit = Math.min(budget, this.slotCount - this.held);
    let taken = 0;
    while (taken < limit) {
      const slot = this.slots[this.next]!;
      const status = Atomics.load(this.words, slot);
      if ((status & TP_STATUS_USER) === 0) break;
      this.next = this.next + 1 === this.slotCount ? 0 : this.next + 1;
      this.held++;
      taken++;
      this.take(slot, status, deliver);
    }
    return taken;
  }

  /** Gives the slots of all frames that were handed out back to the kernel. */
  release(): void {
    let index = this.next - this.held;
    if (index < 0) index += this.slotCount;
    for (; this.held > 0; this.held--) {
      Atomics.store(this.words, this.slots[index]!, TP_STATUS_KERNEL);
      index = index + 1 === this.slotCount ? 0 : index + 1;
    }
  }

  private take(slot: number, status: number, deliver: FrameSink): void {
    const { words, halves, memory } = this;
    const start = slot * 4 + halves[slot * 2 + SLOT_MAC_OFFSET]!;
    const length = words[slot + SLOT_LENGTH]!;
    const tag = (status & TP_STATUS_VLAN_VALID) === 0 ? -1 : this.tagOf(slot, status);
    if ((status & TP_STATUS_COPY) !== 0) {
      this.takeLarge(tag, deliver);
      return;
    }
    if (words[slot + SLOT_CAPTURED] !== length) {
      this.statistics.unusable++;
      return;
    }
    const header = start - VNET_HEADER_BYTES;
    const flags = this.bytes[header]!;
    const kind = this.bytes[header + 1]!;
    if (kind === VNET_GSO_NONE && (flags & VNET_NEEDS_CHECKSUM) === 0 && tag < 0) {
      deliver(memory, start, start + length);
      return;
    }
    const frame = memory.frame(start, start + length);
    // Slots and link headers have even lengths, so these are aligned.
    const at = header >> 1;
    if (kind !== VNET_GSO_NONE) {
      this.segment(frame, kind, halves[at + 2]!, halves[at + 3]!, tag, deliver);
      return;
    }
    if ((flags & VNET_NEEDS_CHECKSUM) !== 0 && !this.complete(frame, halves[at + 3]!, halves[at + 4]!)) return;
    if (tag < 0) {
      deliver(memory, start, start + length);
      return;
    }
    // The virtio-net header has been read: its place takes the addresses.
    this.bytes.copyWithin(start - VLAN_TAG_BYTES, start, start + MAC_BYTES);
    memory.view.setUint32(start - VLAN_TAG_BYTES + MAC_BYTES, tag);
    deliver(memory, start - VLAN_TAG_BYTES, start + length);
  }

  /** The kernel has put a packet that is larger than a slot into the socket's queue, in its turn. */
  private takeLarge(tag: number, deliver: FrameSink): void {
    const received = this.libc.recv(this.fd, this.large, this.large.length, MSG_DONTWAIT);
    if (received <= VNET_HEADER_BYTES) {
      this.statistics.unusable++;
      return;
    }
    const frame = this.large.slice(VNET_HEADER_BYTES, received);
    const half = (offset: number): number => this.largeHalves.getUint16(offset, LITTLE_ENDIAN);
    const kind = this.large[1]!;
    if (kind !== VNET_GSO_NONE) {
      this.segment(frame, kind, half(4), half(6), tag, deliver);
      return;
    }
    if ((this.large[0]! & VNET_NEEDS_CHECKSUM) !== 0 && !this.complete(frame, half(6), half(8))) return;
    handOver(tag < 0 ? frame : withTag(frame, tag), deliver);
  }

  private segment(
    frame: Frame,
    kind: number,
    segmentBytes: number,
    transport: number,
    tag: number,
    deliver: FrameSink,
  ): void {
    const segments = segmentFrame(frame, kind, segmentBytes, transport);
    if (segments === undefined) {
      this.statistics.unusable++;
      return;
    }
    this.statistics.segmented++;
    for (const segment of segments) handOver(tag < 0 ? segment : withTag(segment, tag), deliver);
  }

  private complete(frame: Frame, start: number, offset: number): boolean {
    const done = completeChecksum(frame, start, offset);
    if (done) this.statistics.checksumsCompleted++;
    else this.statistics.unusable++;
    return done;
  }

  /** EtherType and TCI of the tag that the kernel took out of the frame, as one number. */
  private tagOf(slot: number, status: number): number {
    const { halves } = this;
    const type = (status & TP_STATUS_VLAN_TPID_VALID) === 0 ? ETHERTYPE_VLAN : halves[slot * 2 + SLOT_VLAN_TPID]!;
    return type * 0x10000 + halves[slot * 2 + SLOT_VLAN_TCI]!;
  }
}

const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

function withTag(frame: Frame, tag: number): Frame {
  const tagged = new Uint8Array(frame.length + VLAN_TAG_BYTES);
  tagged.set(frame.subarray(0, MAC_BYTES));
  tagged.set(frame.subarray(MAC_BYTES), MAC_BYTES + VLAN_TAG_BYTES);
  new DataView(tagged.buffer).setUint32(MAC_BYTES, tag);
  return tagged;
}

function alignUp(bytes: number, alignment: number = SLOT_ALIGNMENT): number {
  return Math.ceil(bytes / alignment) * alignment;
}
