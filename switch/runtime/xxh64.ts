/** xxHash, 64 bits, seed 0 (the specification is doc/xxhash_spec.md of the xxHash project). */

const PRIME1 = 0x9e3779b185ebca87n;
const PRIME2 = 0xc2b2ae3d27d4eb4fn;
const PRIME3 = 0x165667b19e3779f9n;
const PRIME4 = 0x85ebca77c2b2ae63n;
const PRIME5 = 0x27d4eb2f165667c5n;

export function xxh64(bytes: Uint8Array, length: number): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, length);
  let at = 0;
  let hash: bigint;
  if (length >= 32) {
    let [a, b, c, d] = [cut(PRIME1 + PRIME2), PRIME2, 0n, cut(-PRIME1)];
    for (; at + 32 <= length; at += 32) {
      a = round(a, view.getBigUint64(at, true));
      b = round(b, view.getBigUint64(at + 8, true));
      c = round(c, view.getBigUint64(at + 16, true));
      d = round(d, view.getBigUint64(at + 24, true));
    }
    hash = cut(rotate(a, 1n) + rotate(b, 7n) + rotate(c, 12n) + rotate(d, 18n));
    for (const lane of [a, b, c, d]) hash = cut((hash ^ round(0n, lane)) * PRIME1 + PRIME4);
  } else hash = PRIME5;
  hash = cut(hash + BigInt(length));
  for (; at + 8 <= length; at += 8)
    hash = cut(rotate(hash ^ round(0n, view.getBigUint64(at, true)), 27n) * PRIME1 + PRIME4);
  if (at + 4 <= length) {
    hash = cut(rotate(hash ^ cut(BigInt(view.getUint32(at, true)) * PRIME1), 23n) * PRIME2 + PRIME3);
    at += 4;
  }
  for (; at < length; at++) hash = cut(rotate(hash ^ cut(BigInt(view.getUint8(at)) * PRIME5), 11n) * PRIME1);
  hash = cut((hash ^ (hash >> 33n)) * PRIME2);
  hash = cut((hash ^ (hash >> 29n)) * PRIME3);
  return hash ^ (hash >> 32n);
}

function cut(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}

function rotate(value: bigint, bits: bigint): bigint {
  return cut(value << bits) | (value >> (64n - bits));
}

function round(lane: bigint, input: bigint): bigint {
  return cut(rotate(cut(lane + input * PRIME2), 31n) * PRIME1);
}
