import pino from 'pino';

/** Structured logs on stderr; stdout belongs to results. */
export type Logger = pino.Logger;

/**
 * @param level pino's level name; default `warn` (quiet), or the environment variable DDF_LOG
 */
export function createLogger(level: string = process.env.DDF_LOG ?? 'warn'): Logger {
  return pino({ level, base: null }, pino.destination({ fd: 2, sync: true }));
}
