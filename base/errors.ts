/**
 * Every error that this project raises on purpose has one of these codes. docs/errors.md lists them with causes and remedies; a test
 * holds the two lists together.
 */
export const ERROR_CODES = [
  'INVALID_OPTION',
  'INVALID_FILE',
  'FILE_CHANGED',
  'BASE_MISMATCH',
  'INVALID_TOPOLOGY',
  'ADDRESS_IN_USE',
  'PORT_UNAVAILABLE',
  'INVALID_REQUEST',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'CONFLICT',
  'INVALID_PROGRAM',
  'UNSUPPORTED_PROGRAM',
  'PROGRAM_MISMATCH',
  'SWITCH_REJECTED',
  'SWITCH_UNREACHABLE',
  'NOT_PRIMARY',
  'TABLE_FULL',
  'AGENT_UNREACHABLE',
  'AGENT_FAILED',
  'INVALID_PACKET',
  'INVALID_MANIFEST',
  'CORRUPT_PAYLOAD',
  'HASH_MISMATCH',
  'NO_SPACE',
  'TIMEOUT',
  'CANCELLED',
  'UNREACHABLE_HOST',
  'PATH_TOO_NARROW',
  'MISSING_TOOL',
  'PROCESS_FAILED',
  'INTERNAL',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

export interface ErrorDetails {
  /** Where it happened: a file and line, a table and field, a host. */
  readonly where?: string;
  /** What the user can do about it; a full sentence. */
  readonly remedy?: string;
  /** Whether the same call may succeed later without anybody changing the input. Default false. */
  readonly recoverable?: boolean;
  readonly cause?: unknown;
}

/** The one error shape: a stable code, what is wrong, where, and what to do. */
export class DdfError extends Error {
  readonly code: ErrorCode;
  readonly where: string | undefined;
  readonly remedy: string | undefined;
  readonly recoverable: boolean;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'DdfError';
    this.code = code;
    this.where = details.where;
    this.remedy = details.remedy;
    this.recoverable = details.recoverable ?? false;
  }

  /** One line for people: what, where, what to do. */
  describe(): string {
    const place = this.where === undefined ? '' : ` (${this.where})`;
    const remedy = this.remedy === undefined ? '' : ` ${this.remedy}`;
    return `${this.message}${place}.${remedy}`.replace(/\.\.+/g, '.');
  }
}

/** The error itself if it is ours, otherwise an INTERNAL one that keeps it as its cause. */
export function toDdfError(error: unknown): DdfError {
  if (error instanceof DdfError) return error;
  return new DdfError('INTERNAL', error instanceof Error ? error.message : String(error), { cause: error });
}
