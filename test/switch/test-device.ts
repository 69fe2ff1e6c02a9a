import { createRandom } from '../../base/random.ts';
import type { ProgramControl } from '../../switch/control.ts';
import { Device } from '../../switch/device.ts';
import { buildProgram, type ProgramSpec } from './program-builder.ts';

export interface Sent {
  readonly port: number;
  readonly bytes: number[];
}

/** A device with a program, a clock that is set by hand, and a list of what it sent. */
export class TestDevice {
  nowUs = 0;
  readonly device: Device;
  readonly control: ProgramControl;
  readonly sent: Sent[] = [];
  queueDepth = (_port: number): number => 0;

  constructor(
    program: ProgramSpec | Uint8Array,
    options: { readonly dropPort?: number; readonly priorityQueues?: number } = {},
  ) {
    this.device = new Device({
      ...options,
      deviceId: 1n,
      cpuPort: 510,
      clock: { nowUs: () => this.nowUs },
      random: createRandom('test'),
      queueDepth: (port) => this.queueDepth(port),
    });
    this.device.onTransmit = (port, frame) => this.sent.push({ port, bytes: [...frame] });
    this.device.onCpuFrame = (frame) => this.sent.push({ port: 510, bytes: [...frame] });
    const json = program instanceof Uint8Array ? program : buildProgram(program);
    this.control = this.device.load(this.device.compile(json));
  }

  /** Gives a frame and takes everything that came out for it. */
  run(port: number, bytes: readonly number[]): Sent[] {
    this.sent.length = 0;
    this.device.receive(port, Uint8Array.from(bytes));
    return this.sent.splice(0);
  }
}

/** The bytes of fields, most significant bit first. */
export function pack(fields: readonly (readonly [value: bigint, widthBits: number])[]): number[] {
  let all = 0n;
  let bits = 0;
  for (const [value, width] of fields) {
    all = (all << BigInt(width)) | BigInt.asUintN(width, value);
    bits += width;
  }
  const padding = (8 - (bits % 8)) % 8;
  all <<= BigInt(padding);
  const count = (bits + padding) / 8;
  return Array.from({ length: count }, (_, i) => Number((all >> BigInt(8 * (count - 1 - i))) & 0xffn));
}

/** The unsigned number in some bits of a frame. */
export function unpack(bytes: readonly number[], start: number, width: number): bigint {
  const all = bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  return BigInt.asUintN(width, all >> BigInt(8 * bytes.length - start - width));
}
