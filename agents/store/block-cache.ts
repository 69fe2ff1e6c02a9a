import type { ByteSource } from '../../objects/byte-source.ts';

/** A source that reads its underlying one in aligned pieces and keeps the last few, so that packets of a stream cost no system call each. */
export class BlockCache implements ByteSource {
  readonly sizeBytes: number;
  private readonly source: ByteSource;
  private readonly pieceBytes: number;
  private readonly maxPieces: number;
  /** In the order of their last use. */
  private readonly pieces = new Map<number, Uint8Array>();

  /**
   * @param pieceBytes default 1 MiB
   * @param maxPieces default 8: the stream's own place and repairs of a few earlier ones
   */
  constructor(source: ByteSource, pieceBytes = 1024 * 1024, maxPieces = 8) {
    this.source = source;
    this.sizeBytes = source.sizeBytes;
    this.pieceBytes = pieceBytes;
    this.maxPieces = maxPieces;
  }

  readAt(offset: number, into: Uint8Array): void {
    for (let done = 0; done < into.length; ) {
      const index = Math.floor((offset + done) / this.pieceBytes);
      const within = offset + done - index * this.pieceBytes;
      const piece = this.piece(index);
      const part = piece.subarray(within, Math.min(piece.length, within + into.length - done));
      into.set(part, done);
      done += part.length;
    }
  }

  private piece(index: number): Uint8Array {
    const known = this.pieces.get(index);
    if (known !== undefined) {
      this.pieces.delete(index);
      this.pieces.set(index, known);
      return known;
    }
    const start = index * this.pieceBytes;
    const piece = new Uint8Array(Math.min(this.pieceBytes, this.sizeBytes - start));
    this.source.readAt(start, piece);
    if (this.pieces.size >= this.maxPieces) this.pieces.delete(this.pieces.keys().next().value!);
    this.pieces.set(index, piece);
    return piece;
  }
}
