import { createHmac, timingSafeEqual } from 'node:crypto';
import { formatPayloadId, type PayloadId } from './ids.ts';

/**
 * A bearer token for reading one payload from one holder: `<expiry>.<mac>`, where expiry is milliseconds since 1970 and mac is
 * HMAC-SHA256 (RFC 2104) over payload and expiry in base64url. The controller makes it with the key from the holder's hello.
 *
 * @param expiresAtMs the holder refuses the token from then on
 */
export function rangeToken(rangeKey: Uint8Array, payload: PayloadId, expiresAtMs: number): string {
  return `${expiresAtMs}.${mac(rangeKey, payload, expiresAtMs).toString('base64url')}`;
}

/** Whether `token` was made with this key for this payload and has not expired at `nowMs`. */
export function isRangeTokenValid(rangeKey: Uint8Array, payload: PayloadId, token: string, nowMs: number): boolean {
  const match = /^([0-9]{1,16})\.([A-Za-z0-9_-]{43})$/.exec(token);
  if (match === null) return false;
  const expiresAtMs = Number(match[1]);
  const given = Buffer.from(match[2]!, 'base64url');
  return timingSafeEqual(given, mac(rangeKey, payload, expiresAtMs)) && nowMs < expiresAtMs;
}

function mac(rangeKey: Uint8Array, payload: PayloadId, expiresAtMs: number): Buffer {
  return createHmac('sha256', rangeKey)
    .update(`${formatPayloadId(payload)} ${expiresAtMs}`)
    .digest();
}
