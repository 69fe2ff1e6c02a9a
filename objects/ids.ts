import { DdfError } from '../base/errors.ts';

/** 64 bits that name an object: the tenant in the top 16, a serial number in the other 48. */
export type ObjectId = bigint;

const SERIAL_BITS = 48n;
const SERIAL_LIMIT = 1n << SERIAL_BITS;

/**
 * @param tenant 0 to 65535
 * @param serial 0 to 2^48 - 1
 * @throws DdfError INVALID_OPTION
 */
export function makeObjectId(tenant: number, serial: bigint): ObjectId {
  if (!Number.isInteger(tenant) || tenant < 0 || tenant > 0xffff)
    throw new DdfError('INVALID_OPTION', `tenant ${tenant} is not in 0..65535`);
  if (serial < 0n || serial >= SERIAL_LIMIT)
    throw new DdfError('INVALID_OPTION', `serial ${serial} is not in 0..2^48-1`);
  return (BigInt(tenant) << SERIAL_BITS) | serial;
}

export function tenantOf(objectId: ObjectId): number {
  return Number(objectId >> SERIAL_BITS);
}

export function serialOf(objectId: ObjectId): bigint {
  return objectId & (SERIAL_LIMIT - 1n);
}

/** 16 lowercase hex digits. */
export function formatObjectId(objectId: ObjectId): string {
  return objectId.toString(16).padStart(16, '0');
}

/**
 * The inverse of {@link formatObjectId}; upper case is accepted.
 * @throws DdfError INVALID_OPTION
 */
export function parseObjectId(text: string): ObjectId {
  if (!/^[0-9a-fA-F]{16}$/.test(text))
    throw new DdfError('INVALID_OPTION', `"${text}" is not an object id`, { remedy: 'Give 16 hex digits.' });
  return BigInt(`0x${text}`);
}

/** What travels or is stored: the image of a version (`baseVersion` 0), or the delta that leads from a base version to it. */
export interface PayloadId {
  readonly objectId: ObjectId;
  readonly version: number;
  readonly baseVersion: number;
}

/** `<objectId>-<version>-<baseVersion>`: a name for files, logs and messages. */
export function formatPayloadId(id: PayloadId): string {
  return `${formatObjectId(id.objectId)}-${id.version}-${id.baseVersion}`;
}

/** The inverse of {@link formatPayloadId}; undefined if the text is not in its form. */
export function parsePayloadId(text: string): PayloadId | undefined {
  const match = /^([0-9a-f]{16})-(0|[1-9][0-9]{0,9})-(0|[1-9][0-9]{0,9})$/.exec(text);
  if (match === null) return undefined;
  const version = Number(match[2]);
  const baseVersion = Number(match[3]);
  if (version > 0xffffffff || baseVersion > 0xffffffff) return undefined;
  return { objectId: BigInt(`0x${match[1]}`), version, baseVersion };
}
