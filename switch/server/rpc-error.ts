import { DdfError, type ErrorCode, toDdfError } from '../../base/errors.ts';
import type { P4Error, Status } from '../../wire/p4runtime/messages.ts';
import { messageCodec, packAny } from '../../wire/proto.ts';

/** google.rpc.Code, which gRPC shares. */
export const RpcCode = {
  OK: 0,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
} as const;

export type RpcCodeName = Exclude<keyof typeof RpcCode, 'OK'>;

const OUR_CODE: Readonly<Record<RpcCodeName, ErrorCode>> = {
  UNKNOWN: 'SWITCH_REJECTED',
  INVALID_ARGUMENT: 'INVALID_REQUEST',
  NOT_FOUND: 'NOT_FOUND',
  ALREADY_EXISTS: 'ALREADY_EXISTS',
  PERMISSION_DENIED: 'SWITCH_REJECTED',
  RESOURCE_EXHAUSTED: 'TABLE_FULL',
  FAILED_PRECONDITION: 'CONFLICT',
  ABORTED: 'CANCELLED',
  OUT_OF_RANGE: 'INVALID_REQUEST',
  UNIMPLEMENTED: 'UNSUPPORTED_PROGRAM',
  INTERNAL: 'INTERNAL',
};

/** An answer other than OK, with the code that the client gets. */
export class RpcError extends DdfError {
  readonly rpcCode: RpcCodeName;

  constructor(rpcCode: RpcCodeName, message: string) {
    super(OUR_CODE[rpcCode], message);
    this.rpcCode = rpcCode;
  }

  get status(): number {
    return RpcCode[this.rpcCode];
  }
}

/** What the device and the codecs report, in the codes of P4Runtime. */
const RPC_CODE: Readonly<Partial<Record<ErrorCode, RpcCodeName>>> = {
  ALREADY_EXISTS: 'ALREADY_EXISTS',
  NOT_FOUND: 'NOT_FOUND',
  TABLE_FULL: 'RESOURCE_EXHAUSTED',
  INVALID_REQUEST: 'INVALID_ARGUMENT',
  INVALID_PROGRAM: 'INVALID_ARGUMENT',
  UNSUPPORTED_PROGRAM: 'INVALID_ARGUMENT',
  PROGRAM_MISMATCH: 'INVALID_ARGUMENT',
};

export function toRpcError(error: unknown): RpcError {
  if (error instanceof RpcError) return error;
  const ours = toDdfError(error);
  return new RpcError(RPC_CODE[ours.code] ?? 'INTERNAL', ours.describe());
}

const statusCodec = messageCodec<Status>('google.rpc.Status');
const errorCodec = messageCodec<P4Error>('p4.v1.Error');

/** Trailers above some 56 KB wedge clients on grpc-js and nghttp2 (limit of one header: 64 KiB after base64). */
const MAX_DETAILS_BYTES = 48 * 1024;
const MAX_MESSAGE_LENGTH = 1024;

/**
 * The outcome of a batch of which something failed (P4Runtime 1.5, section "Error Reporting"): one p4.v1.Error per member in the order of the
 * batch. Texts go first when that gets too large; a batch so large that even the codes do not fit has no details, which clients have to take as
 * an unknown outcome.
 */
export interface BatchFailure {
  readonly code: number;
  readonly message: string;
  /** An encoded google.rpc.Status for the trailer grpc-status-details-bin. */
  readonly details: Uint8Array | undefined;
}

export function batchFailure(outcomes: readonly (RpcError | undefined)[]): BatchFailure {
  const failed = outcomes.filter((outcome) => outcome !== undefined);
  const message = `${failed.length} of ${outcomes.length} failed, the first with: ${failed[0]?.message}`.slice(
    0,
    MAX_MESSAGE_LENGTH,
  );
  const encode = (texts: boolean): Uint8Array =>
    statusCodec.encode({
      code: RpcCode.UNKNOWN,
      message: texts ? message : '',
      details: outcomes.map((outcome) =>
        packAny(errorCodec, {
          canonicalCode: outcome?.status ?? RpcCode.OK,
          message: texts ? (outcome?.message.slice(0, MAX_MESSAGE_LENGTH) ?? '') : '',
          space: texts && outcome !== undefined ? ERROR_SPACE : '',
        }),
      ),
    });
  let details: Uint8Array | undefined = encode(true);
  if (details.length > MAX_DETAILS_BYTES) details = encode(false);
  if (details.length > MAX_DETAILS_BYTES) details = undefined;
  return { code: RpcCode.UNKNOWN, message, details };
}

/** Says whose messages these are. */
export const ERROR_SPACE = 'ddf-switch';
