/** A CRC in the terms of the Rocksoft model: the polynomial without its leading one, most significant bit first. */
export interface CrcParameters {
  readonly widthBits: number;
  readonly polynomial: bigint;
  readonly initial: bigint;
  /** Added (exclusive or) at the end. */
  readonly final: bigint;
  /** The low bit of a byte comes first, and the result is turned round. */
  readonly reflected: boolean;
}

function crc(widthBits: number, polynomial: bigint, initial: bigint, final: bigint, reflected: boolean): CrcParameters {
  return { widthBits, polynomial, initial, final, reflected };
}

const ONES_64 = 0xffff_ffff_ffff_ffffn;

/** By simple_switch's names: P4-14's, which are those of the usual catalogues, and the customised ones as they start. */
const KNOWN: ReadonlyMap<string, CrcParameters> = new Map([
  ['crc8_custom', crc(8, 0x07n, 0n, 0n, false)],
  ['crc16_custom', crc(16, 0x8005n, 0n, 0n, true)],
  ['crc32_custom', crc(32, 0x04c11db7n, 0xffffffffn, 0xffffffffn, true)],
  ['crc64_custom', crc(64, 0x1bn, 0n, 0n, true)],
  ['crc_8', crc(8, 0x07n, 0n, 0n, false)],
  ['crc_8_darc', crc(8, 0x39n, 0n, 0n, true)],
  ['crc_8_i_code', crc(8, 0x1dn, 0xfdn, 0n, false)],
  ['crc_8_itu', crc(8, 0x07n, 0n, 0x55n, false)],
  ['crc_8_maxim', crc(8, 0x31n, 0n, 0n, true)],
  ['crc_8_rohc', crc(8, 0x07n, 0xffn, 0n, true)],
  ['crc_8_wcdma', crc(8, 0x9bn, 0n, 0n, true)],
  ['crc_16', crc(16, 0x8005n, 0n, 0n, true)],
  ['crc_16_buypass', crc(16, 0x8005n, 0n, 0n, false)],
  ['crc_16_dds_110', crc(16, 0x8005n, 0x800dn, 0n, false)],
  ['crc_16_dect', crc(16, 0x0589n, 0n, 0x0001n, false)],
  ['crc_16_dnp', crc(16, 0x3d65n, 0n, 0xffffn, true)],
  ['crc_16_en_13757', crc(16, 0x3d65n, 0n, 0xffffn, false)],
  ['crc_16_genibus', crc(16, 0x1021n, 0xffffn, 0xffffn, false)],
  ['crc_16_maxim', crc(16, 0x8005n, 0n, 0xffffn, true)],
  ['crc_16_mcrf4xx', crc(16, 0x1021n, 0xffffn, 0n, true)],
  ['crc_16_riello', crc(16, 0x1021n, 0xb2aan, 0n, true)],
  ['crc_16_t10_dif', crc(16, 0x8bb7n, 0n, 0n, false)],
  ['crc_16_teledisk', crc(16, 0xa097n, 0n, 0n, false)],
  ['crc_16_usb', crc(16, 0x8005n, 0xffffn, 0xffffn, true)],
  ['x_25', crc(16, 0x1021n, 0xffffn, 0xffffn, true)],
  ['xmodem', crc(16, 0x1021n, 0n, 0n, false)],
  ['modbus', crc(16, 0x8005n, 0xffffn, 0n, true)],
  ['kermit', crc(16, 0x1021n, 0n, 0n, true)],
  ['crc_ccitt_false', crc(16, 0x1021n, 0xffffn, 0n, false)],
  ['crc_aug_ccitt', crc(16, 0x1021n, 0x1d0fn, 0n, false)],
  ['crc_32', crc(32, 0x04c11db7n, 0xffffffffn, 0xffffffffn, true)],
  ['crc_32_bzip2', crc(32, 0x04c11db7n, 0xffffffffn, 0xffffffffn, false)],
  ['crc_32c', crc(32, 0x1edc6f41n, 0xffffffffn, 0xffffffffn, true)],
  ['crc_32d', crc(32, 0xa833982bn, 0xffffffffn, 0xffffffffn, true)],
  ['crc_32_mpeg', crc(32, 0x04c11db7n, 0xffffffffn, 0n, false)],
  ['posix', crc(32, 0x04c11db7n, 0n, 0xffffffffn, false)],
  ['crc_32q', crc(32, 0x814141abn, 0n, 0n, false)],
  ['jamcrc', crc(32, 0x04c11db7n, 0xffffffffn, 0n, true)],
  ['xfer', crc(32, 0xafn, 0n, 0n, false)],
  ['crc_64', crc(64, 0x1bn, 0n, 0n, true)],
  ['crc_64_we', crc(64, 0x42f0e1eba9ea3693n, ONES_64, ONES_64, false)],
  ['crc_64_jones', crc(64, 0xad93d23594c935a9n, ONES_64, 0n, true)],
]);

/**
 * The CRC of that name, or the one that P4-14's generic name describes: `poly_0x11021_init_0xffff_not_rev_xout_0x1`, where the
 * polynomial is written with its leading one. `undefined` for any other name.
 */
export function crcParameters(algorithm: string): CrcParameters | undefined {
  return KNOWN.get(algorithm) ?? described(algorithm);
}

function described(algorithm: string): CrcParameters | undefined {
  const words = algorithm.split('_');
  let [polynomial, initial, final, reflected] = ['', '0x0', '0x0', true];
  while (words.length > 0) {
    const [property, value = ''] = words.splice(0, 2);
    if (property === 'not' && value === 'rev') reflected = false;
    else if (!/^0x[0-9a-f]+$/i.test(value)) return undefined;
    else if (property === 'poly') polynomial = value;
    else if (property === 'init') initial = value;
    else if (property === 'xout') final = value;
    else return undefined;
  }
  const widthBits = 4 * (polynomial.length - 3);
  if (!polynomial.startsWith('0x1') || ![8, 16, 32, 64].includes(widthBits)) return undefined;
  const cut = (text: string): bigint => BigInt.asUintN(widthBits, BigInt(text));
  return crc(widthBits, cut(polynomial), cut(initial), cut(final), reflected);
}
