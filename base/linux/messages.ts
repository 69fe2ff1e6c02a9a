/**
 * Where things are in the structures that sendmmsg and recvmmsg take on 64-bit machines, in 32-bit words: what is kept in typed arrays for the
 * kernel to read by its address.
 *
 * struct mmsghdr: struct msghdr (56 bytes), msg_len, 4 bytes of padding.
 */
export const MESSAGE_WORDS = 16;
/** In struct msghdr: msg_name, msg_namelen, msg_iov, msg_iovlen, msg_control, msg_controllen, msg_flags; then msg_len. */
export const MESSAGE_NAME_WORD = 0;
export const MESSAGE_NAME_LENGTH_WORD = 2;
export const MESSAGE_IOV_WORD = 4;
export const MESSAGE_IOV_COUNT_WORD = 6;
export const MESSAGE_CONTROL_WORD = 8;
export const MESSAGE_CONTROL_LENGTH_WORD = 10;
export const MESSAGE_FLAGS_WORD = 12;
export const MESSAGE_LENGTH_WORD = 14;
/** struct iovec: base, length. */
export const VECTOR_WORDS = 4;

export const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/** Writes a 64-bit value below 2^53 in the machine's byte order. */
export function writePointer(words: Uint32Array, at: number, value: number): void {
  const high = Math.floor(value / 0x1_0000_0000);
  words[at + LOW_WORD] = value - high * 0x1_0000_0000;
  words[at + 1 - LOW_WORD] = high;
}

/** Which of the two words of a 64-bit value has its lower half. */
export const LOW_WORD = IS_LITTLE_ENDIAN ? 0 : 1;
