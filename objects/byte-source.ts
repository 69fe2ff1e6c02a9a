/** Bytes at any offset, synchronously: a file in a worker thread, a block cache over one, memory in a test. */
export interface ByteSource {
  readonly sizeBytes: number;
  /** Fills `into` with the bytes at `offset`; the caller stays inside `sizeBytes`. */
  readAt(offset: number, into: Uint8Array): void;
}

/** A source over bytes in memory. */
export function memorySource(bytes: Uint8Array): ByteSource {
  return { sizeBytes: bytes.length, readAt: (offset, into) => into.set(bytes.subarray(offset, offset + into.length)) };
}
