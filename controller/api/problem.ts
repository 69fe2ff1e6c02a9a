import { type DdfError, type ErrorCode, toDdfError } from '../../base/errors.ts';

/** An error as application/problem+json (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: ErrorCode;
  detail: string;
  where?: string;
  remedy?: string;
}

const STATUS: Partial<Record<ErrorCode, number>> = {
  INVALID_OPTION: 400,
  INVALID_REQUEST: 400,
  INVALID_FILE: 422,
  FILE_CHANGED: 409,
  BASE_MISMATCH: 409,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  CONFLICT: 409,
  NO_SPACE: 507,
  TABLE_FULL: 507,
  AGENT_UNREACHABLE: 503,
  SWITCH_UNREACHABLE: 503,
  NOT_PRIMARY: 503,
  AGENT_FAILED: 502,
  SWITCH_REJECTED: 502,
  TIMEOUT: 504,
};

export function problemOf(error: unknown): Problem {
  const known: DdfError = toDdfError(error);
  return {
    type: `urn:ddf:error:${known.code}`,
    title: known.code.toLowerCase().replaceAll('_', ' '),
    status: STATUS[known.code] ?? 500,
    code: known.code,
    detail: known.message,
    ...(known.where === undefined ? {} : { where: known.where }),
    ...(known.remedy === undefined ? {} : { remedy: known.remedy }),
  };
}
