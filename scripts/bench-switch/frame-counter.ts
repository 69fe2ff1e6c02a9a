import { SOL_SOCKET } from '../../base/linux/abi.ts';
import type { Libc } from '../../base/linux/libc.ts';
import {
  ETH_P_ALL,
  PACKET_IGNORE_OUTGOING,
  PACKET_RX_RING,
  PACKET_VERSION,
  SLOT_LENGTH,
  SO_ATTACH_FILTER,
  SOL_PACKET,
  TP_STATUS_KERNEL,
  TP_STATUS_USER,
  TPACKET_V2,
} from '../../switch/ports/linux/abi.ts';
import { bindPacketSocket, openPacketSocket, setOption } from '../../switch/ports/linux/packet-socket.ts';

const SLOT_BYTES = 192;
const BLOCK_BYTES = 64 * 1024 - ((64 * 1024) % SLOT_BYTES);
const PAGE_BYTES = 4096;
const SLOTS = 8192;
/** Headers are enough to count a frame; so the kernel does not copy the rest. */
const CAPTURED_BYTES = 64;

/** Counts the frames that arrive at an interface, at next to no cost. */
export class FrameCounter {
  frames = 0;
  bytes = 0;
  private readonly words: Int32Array;
  private readonly wordsPerBlock: number;
  private readonly slotsPerBlock: number;
  private readonly slotCount: number;
  private readonly fd: number;
  private readonly libc: Libc;
  private next = 0;

  constructor(libc: Libc, interfaceName: string, interfaceIndex: number) {
    this.libc = libc;
    this.fd = openPacketSocket(libc, interfaceName);
    setOption(libc, this.fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2, 'use receive rings', interfaceName);
    setOption(libc, this.fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, 'leave out what is sent', interfaceName);
    // One instruction of a classic BPF program: accept so many bytes (BPF_RET | BPF_K).
    const instruction = new Uint8Array(8);
    new Uint16Array(instruction.buffer)[0] = 6;
    new Uint32Array(instruction.buffer)[1] = CAPTURED_BYTES;
    const program = new BigUint64Array([1n, BigInt(libc.addressOf(instruction.buffer))]);
    libc.setsockopt(this.fd, SOL_SOCKET, SO_ATTACH_FILTER, new Uint8Array(program.buffer), 16);
    const blockBytes = Math.ceil(BLOCK_BYTES / PAGE_BYTES) * PAGE_BYTES;
    this.wordsPerBlock = blockBytes / 4;
    this.slotsPerBlock = Math.floor(blockBytes / SLOT_BYTES);
    const blocks = Math.ceil(SLOTS / this.slotsPerBlock);
    this.slotCount = blocks * this.slotsPerBlock;
    const request = new Uint8Array(new Uint32Array([blockBytes, blocks, SLOT_BYTES, this.slotCount]).buffer);
    const made = libc.setsockopt(this.fd, SOL_PACKET, PACKET_RX_RING, request, request.length);
    const mapped = made < 0 ? undefined : libc.mapRing(this.fd, blocks * blockBytes);
    if (mapped === undefined) throw new Error(`no receive ring for ${interfaceName}: errno ${libc.errno()}`);
    this.words = new Int32Array(mapped.buffer);
    bindPacketSocket(libc, this.fd, ETH_P_ALL, interfaceIndex, interfaceName);
  }

  /** Counts what has arrived since the last call. */
  drain(): void {
    const { words } = this;
    for (;;) {
      const block = Math.floor(this.next / this.slotsPerBlock);
      const slot = block * this.wordsPerBlock + ((this.next % this.slotsPerBlock) * SLOT_BYTES) / 4;
      if ((Atomics.load(words, slot) & TP_STATUS_USER) === 0) return;
      this.frames++;
      this.bytes += words[slot + SLOT_LENGTH]!;
      Atomics.store(words, slot, TP_STATUS_KERNEL);
      this.next = this.next + 1 === this.slotCount ? 0 : this.next + 1;
    }
  }

  close(): void {
    this.libc.close(this.fd);
  }
}
