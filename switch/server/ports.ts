import { decodeBits } from '../../wire/p4runtime/byte-strings.ts';
import { SdnPort } from '../../wire/p4runtime/messages.ts';

/** v1model: 9-bit ports of which the last means "drop". */
const MAX_PORT = 510;

/**
 * SDN ports are those of the device; one more number names the port to the CPU (P4Runtime 1.5, section "Port Translation").
 * Throws Error with a text that says what is wrong.
 */
export function parsePort(given: Uint8Array | number, cpuPort: number): number {
  const port = typeof given === 'number' ? given >>> 0 : Number(decodeBits(given, 32));
  if (port === SdnPort.SDN_PORT_CPU >>> 0) return cpuPort;
  if (port < 1 || port > MAX_PORT) throw new RangeError(`port ${port} is not in 1..${MAX_PORT}`);
  return port;
}
