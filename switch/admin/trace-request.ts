import { DdfError } from '../../base/errors.ts';
import { DROP_REASON_NAMES } from '../../p4/build/constants.ts';
import type { Device } from '../device.ts';
import type { PacketTrace } from '../trace/events.ts';
import { formatTrace } from '../trace/format.ts';

/** What is asked of a switch: either one `frame` that comes by `port`, or the next `count` packets. */
export interface TraceRequest {
  /** With a frame: the port it comes by. Without: only packets of this port. */
  readonly port?: number;
  /** The frame in hexadecimal, from the destination address on. */
  readonly frame?: string;
  /** Whether the frame is really received; otherwise it is only tried and leaves no marks. Default false. */
  readonly inject?: boolean;
  /** Packets to wait for, 1 to 1000; default 1. */
  readonly count?: number;
  /** How long they are waited for, at most 60; default 10. */
  readonly seconds?: number;
}

export interface PacketTraceView extends PacketTrace {
  /** The events for people to read. */
  readonly text: string;
}

const DEFAULT_SECONDS = 10;
const MAX_SECONDS = 60;
const MAX_PORT = 511;
/** Larger than any frame of a network. */
const MAX_FRAME_BYTES = 65_535;
/** The table by which the fabric's own program is known. */
const FABRIC_TABLE = 'FabricIngress.admission.port_role';

/**
 * Traces what was asked for. Of packets to come, those that came until the time was over or `signal` aborted.
 *
 * Throws INVALID_REQUEST, NOT_FOUND when the switch runs no program, CONFLICT when it traces for too many already.
 */
export async function traceOnDevice(
  device: Device,
  request: TraceRequest,
  signal?: AbortSignal,
): Promise<PacketTraceView[]> {
  const { port, frame, inject, count, seconds } = checked(request);
  const view = (trace: PacketTrace): PacketTraceView => ({ ...trace, text: formatTrace(trace, { meaning }) });
  const isFabric = device.program?.tables.has(FABRIC_TABLE) === true;
  const meaning = (field: string, value: bigint): string | undefined =>
    isFabric && field.endsWith('drop_reason') ? DROP_REASON_NAMES[Number(value)] : undefined;
  if (frame !== undefined) return [view(device.trace(port!, frame, { inject }))];
  return new Promise((resolve) => {
    const traces: PacketTraceView[] = [];
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      cancel();
      resolve(traces);
    };
    const cancel = device.traceNext(port === undefined ? {} : { port }, count, (trace) => {
      traces.push(view(trace));
      if (traces.length === count) end();
    });
    const timer = setTimeout(end, 1000 * seconds);
    signal?.addEventListener('abort', end);
    if (signal?.aborted === true) end();
  });
}

function checked(request: TraceRequest) {
  const { port, frame, inject = false, count = 1, seconds = DEFAULT_SECONDS } = request;
  const refuse = (member: keyof TraceRequest, what: string): never => {
    throw new DdfError('INVALID_REQUEST', `A trace's ${member} ${what}`, { where: member });
  };
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= MAX_PORT))
    refuse('port', `is a whole number from 0 to ${MAX_PORT}, not ${port}`);
  if (typeof inject !== 'boolean') refuse('inject', 'is true or false');
  if (!(Number.isInteger(count) && count >= 1 && count <= 1000)) refuse('count', `is 1 to 1000, not ${count}`);
  if (!(typeof seconds === 'number' && seconds > 0 && seconds <= MAX_SECONDS))
    refuse('seconds', `is above 0 and at most ${MAX_SECONDS}, not ${seconds}`);
  if (frame === undefined) return { port, frame, inject, count, seconds };
  if (port === undefined) refuse('port', 'is missing: a frame comes by one');
  if (typeof frame !== 'string' || frame.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(frame))
    refuse('frame', 'is written in hexadecimal, two digits a byte');
  if (frame.length > 2 * MAX_FRAME_BYTES) refuse('frame', `has at most ${MAX_FRAME_BYTES} bytes`);
  return { port, frame: Uint8Array.from(Buffer.from(frame, 'hex')), inject, count, seconds };
}
