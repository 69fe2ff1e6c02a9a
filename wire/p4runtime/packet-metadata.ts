import { DdfError } from '../../base/errors.ts';
import { decodeBits, encodeBits } from './byte-strings.ts';
import type { PacketMetadata } from './messages.ts';
import type { ControllerHeaderInfo, FieldInfo } from './p4info-objects.ts';

/**
 * Converts between the metadata of packet-in/out messages and the controller header that the program sees in front of the packet (P4Runtime 1.5,
 * sections "ControllerPacketMetadata" and "Packet I/O"). Fields go by P4Info id and width, never by their position in a message.
 */
export class PacketMetadataCodec {
  readonly header: ControllerHeaderInfo;
  readonly headerBytes: number;
  private readonly byId: ReadonlyMap<number, FieldInfo>;

  /** Throws DdfError INVALID_PROGRAM when the header's widths do not add up to whole bytes. */
  constructor(header: ControllerHeaderInfo) {
    const bits = header.fields.reduce((sum, field) => sum + field.widthBits, 0);
    if (bits % 8 !== 0)
      throw new DdfError('INVALID_PROGRAM', `The header has ${bits} bits, which are no whole bytes`, {
        where: `P4Info, controller header ${header.name}`,
      });
    this.header = header;
    this.headerBytes = bits / 8;
    this.byId = new Map(header.fields.map((field) => [field.id, field]));
  }

  /** Metadata from values by field name; every field must be there. */
  fromValues(values: Readonly<Record<string, bigint>>): PacketMetadata[] {
    return this.header.fields.map((field) => {
      const value = values[field.name];
      if (value === undefined) throw this.invalid(`${field.name} is missing`);
      return { metadataId: field.id, value: encodeBits(value) };
    });
  }

  /**
   * Values by field name.
   * @throws DdfError INVALID_REQUEST for a missing, unknown or repeated field or a value that does not fit
   */
  toValues(metadata: readonly PacketMetadata[]): Record<string, bigint> {
    const values: Record<string, bigint> = {};
    for (const { metadataId, value } of metadata) {
      const field = this.byId.get(metadataId);
      if (field === undefined) throw this.invalid(`there is no field with id ${metadataId}`);
      if (Object.hasOwn(values, field.name)) throw this.invalid(`${field.name} is given twice`);
      try {
        values[field.name] = decodeBits(value, field.widthBits);
      } catch (error) {
        throw this.invalid(`${field.name}: ${error instanceof Error ? error.message : error}`);
      }
    }
    for (const field of this.header.fields)
      if (!Object.hasOwn(values, field.name)) throw this.invalid(`${field.name} is missing`);
    return values;
  }

  /** The packet with its header in front, as the program's CPU port takes it. Throws like {@link toValues}. */
  join(metadata: readonly PacketMetadata[], payload: Uint8Array): Uint8Array {
    const values = this.toValues(metadata);
    let bits = 0n;
    for (const field of this.header.fields) bits = (bits << BigInt(field.widthBits)) | values[field.name]!;
    const frame = new Uint8Array(this.headerBytes + payload.length);
    for (let i = this.headerBytes - 1; i >= 0; i--) {
      frame[i] = Number(bits & 0xffn);
      bits >>= 8n;
    }
    frame.set(payload, this.headerBytes);
    return frame;
  }

  /** Metadata and payload of a packet that the CPU port sent up. Throws DdfError INVALID_PACKET when it is shorter than the header. */
  split(frame: Uint8Array): { metadata: PacketMetadata[]; payload: Uint8Array } {
    if (frame.length < this.headerBytes)
      throw new DdfError(
        'INVALID_PACKET',
        `A packet of ${frame.length} bytes is shorter than the header ${this.header.name}`,
      );
    let bits = 0n;
    for (let i = 0; i < this.headerBytes; i++) bits = (bits << 8n) | BigInt(frame[i]!);
    const metadata: PacketMetadata[] = [];
    let shift = BigInt(this.headerBytes * 8);
    for (const field of this.header.fields) {
      shift -= BigInt(field.widthBits);
      metadata.push({ metadataId: field.id, value: encodeBits(BigInt.asUintN(field.widthBits, bits >> shift)) });
    }
    return { metadata, payload: frame.subarray(this.headerBytes) };
  }

  private invalid(what: string): DdfError {
    return new DdfError('INVALID_REQUEST', `Packet metadata for ${this.header.name}: ${what}`);
  }
}
