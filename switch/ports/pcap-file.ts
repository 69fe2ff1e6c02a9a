import { type FileHandle, open } from 'node:fs/promises';
import { DdfError } from '../../base/errors.ts';
import type { Frame } from './port.ts';

/** The classic format with microseconds, as libpcap has written it since 2.4. */
const MAGIC = 0xa1b2c3d4;
const VERSION_MAJOR = 2;
const VERSION_MINOR = 4;
const LINKTYPE_ETHERNET = 1;
const SNAPSHOT_BYTES = 65535;
const FILE_HEADER_BYTES = 24;
const RECORD_HEADER_BYTES = 16;
const CHUNK_BYTES = 256 * 1024;
/** Memory for frames that the disk has not taken yet; what comes on top is left out of the file and counted. */
const MAX_WAITING_CHUNKS = 32;

/** A capture of one direction of a port. Writing happens behind the back of those who add frames, and never makes them wait. */
export class PcapFile {
  /** Frames that are not in the file, because the disk was too slow or full. */
  omitted = 0;
  private readonly file: FileHandle;
  private chunk = new DataView(new ArrayBuffer(CHUNK_BYTES));
  private used = FILE_HEADER_BYTES;
  private readonly waiting: Uint8Array[] = [];
  private writing: Promise<void> | undefined;
  private failed = false;

  private constructor(file: FileHandle) {
    this.file = file;
    this.chunk.setUint32(0, MAGIC);
    this.chunk.setUint16(4, VERSION_MAJOR);
    this.chunk.setUint16(6, VERSION_MINOR);
    this.chunk.setUint32(16, SNAPSHOT_BYTES);
    this.chunk.setUint32(20, LINKTYPE_ETHERNET);
  }

  /** Replaces the file at `path`. Throws INVALID_OPTION when it cannot be written. */
  static async create(path: string): Promise<PcapFile> {
    try {
      return new PcapFile(await open(path, 'w'));
    } catch (cause) {
      throw new DdfError('INVALID_OPTION', `The capture ${path} cannot be written: ${(cause as Error).message}`, {
        cause,
      });
    }
  }

  /** Copies the frame. @param wallUs microseconds since 1970 */
  add(frame: Frame, wallUs: number): void {
    const bytes = Math.min(frame.length, SNAPSHOT_BYTES);
    if (this.used + RECORD_HEADER_BYTES + bytes > CHUNK_BYTES && !this.nextChunk()) {
      this.omitted++;
      return;
    }
    const { chunk, used } = this;
    chunk.setUint32(used, Math.floor(wallUs / 1_000_000));
    chunk.setUint32(used + 4, wallUs % 1_000_000);
    chunk.setUint32(used + 8, bytes);
    chunk.setUint32(used + 12, frame.length);
    new Uint8Array(chunk.buffer).set(
      bytes === frame.length ? frame : frame.subarray(0, bytes),
      used + RECORD_HEADER_BYTES,
    );
    this.used += RECORD_HEADER_BYTES + bytes;
  }

  /** Writes what has been added so far. Resolves when it is in the file. */
  async flush(): Promise<void> {
    this.nextChunk();
    await this.writing;
  }

  async close(): Promise<void> {
    await this.flush();
    // The last chunk waited for room.
    await this.flush();
    await this.file.close().catch(() => undefined);
  }

  private nextChunk(): boolean {
    if (this.failed || this.waiting.length >= MAX_WAITING_CHUNKS) return false;
    if (this.used === 0) return true;
    this.waiting.push(new Uint8Array(this.chunk.buffer, 0, this.used));
    this.chunk = new DataView(new ArrayBuffer(CHUNK_BYTES));
    this.used = 0;
    this.writing ??= this.write();
    return true;
  }

  private async write(): Promise<void> {
    try {
      for (let next = this.waiting[0]; next !== undefined; next = this.waiting[0]) {
        for (let start = 0; start < next.length; ) {
          const { bytesWritten } = await this.file.write(next, start);
          start += bytesWritten;
        }
        this.waiting.shift();
      }
    } catch {
      // A full disk ends the capture, not the switch.
      this.failed = true;
      this.waiting.length = 0;
    }
    this.writing = undefined;
  }
}
