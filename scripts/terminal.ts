/** Where commands write. Results go to stdout; with `redraw`, one line on a terminal is drawn over until something else is written. */
export interface Terminal {
  out(text: string): void;
  error(text: string): void;
  /** Undefined where stderr is no terminal: then progress has to be sparse lines. */
  readonly redraw: ((line: string) => void) | undefined;
  /** Leaves the redrawn line as it is; what follows starts on a new one. */
  finishLine(): void;
}

interface Stream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

const DEFAULT_COLUMNS = 80;
const CLEAR_LINE = '\r\u001b[2K';

export function createTerminal(stdout: Stream, stderr: Stream): Terminal {
  let drawn = false;
  const finishLine = (): void => {
    if (drawn) stderr.write('\n');
    drawn = false;
  };
  return {
    out(text) {
      finishLine();
      stdout.write(`${text}\n`);
    },
    error(text) {
      finishLine();
      stderr.write(`${text}\n`);
    },
    redraw:
      stderr.isTTY === true
        ? (line) => {
            drawn = true;
            stderr.write(CLEAR_LINE + line.slice(0, (stderr.columns ?? DEFAULT_COLUMNS) - 1));
          }
        : undefined,
    finishLine,
  };
}
