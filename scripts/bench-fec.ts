/**
 * How fast the erasure code is on one core: `npm run bench:fec [-- --json]`.
 *
 * Parity symbols for blocks of 64 segments and the restoring of lost ones, for segments of 8,192 and 1,376 bytes, next to look-ups in plain
 * JavaScript tables in the same run. Runs of the two alternate. The way from the caller's buffers and back is counted; blocks change from symbol
 * to symbol, so that they do not come from the second-level cache. Everything restored is compared with what was sent.
 */
import { cpus } from 'node:os';
import { inverse, multiply } from '../agents/fec/galois.ts';
import { encodeParity, encodeSymbol, type ParitySymbol, restoreSources } from '../agents/fec/reed-solomon.ts';
import { createRandom } from '../base/random.ts';
import { FABRIC_SOURCE_SYMBOLS } from '../p4/build/constants.ts';

const SEGMENT_BYTES = [8192, 1376];
/** Eight megabytes of the longer segments, 1.4 of the shorter ones. */
const BLOCKS = 16;
const RUNS = 15;
const RUN_MS = 40;
const MISSING = [1, 4, 16];
const PARITY_AHEAD = 8;

type Block = readonly Uint8Array[];

interface Measured {
  /** Median over the runs. */
  readonly microseconds: number;
  /** Source bytes multiplied and accumulated per second. */
  readonly bytesPerSecond: number;
}

interface Figures {
  readonly segmentBytes: number;
  readonly plain: Measured;
  readonly one: Measured;
  /** Per symbol, of PARITY_AHEAD made together. */
  readonly several: Measured;
  /** By the number of symbols missing. */
  readonly restore: Record<number, Measured>;
}

const PRODUCTS = Array.from({ length: 256 }, (_, a) => Uint8Array.from({ length: 256 }, (_, b) => multiply(a, b)));

/** The plain way: a table of 256 products per coefficient, four bytes loaded and stored at once. */
function encodeByTables(sources: Block, symbol: number, out: Uint8Array): void {
  out.fill(0);
  const target = new Uint32Array(out.buffer, out.byteOffset, out.length >> 2);
  for (const [j, source] of sources.entries()) {
    const row = PRODUCTS[inverse(symbol ^ j)]!;
    const words = new Uint32Array(source.buffer, source.byteOffset, target.length);
    for (let i = 0; i < words.length; i++) {
      const word = words[i]!;
      target[i]! ^=
        row[word & 255]! |
        (row[(word >>> 8) & 255]! << 8) |
        (row[(word >>> 16) & 255]! << 16) |
        (row[word >>> 24]! << 24);
    }
  }
}

function makeBlocks(segmentBytes: number): Block[] {
  const random = createRandom('bench');
  return Array.from({ length: BLOCKS }, () => {
    const words = Uint32Array.from({ length: (FABRIC_SOURCE_SYMBOLS * segmentBytes) / 4 }, () => random.uint32());
    const bytes = new Uint8Array(words.buffer);
    return Array.from({ length: FABRIC_SOURCE_SYMBOLS }, (_, j) =>
      bytes.subarray(j * segmentBytes, (j + 1) * segmentBytes),
    );
  });
}

function sameBytes(a: Uint8Array, b: Uint8Array, what: string): void {
  if (Buffer.compare(a, b) !== 0) throw new Error(`${what} differs`);
}

interface Case {
  readonly action: (i: number) => void;
  /** Before and after, not counted. */
  readonly prepare?: (i: number) => void;
  readonly check?: (i: number) => void;
}

/** Microseconds that one call of each took, as the median of runs that take turns. */
function measure(cases: readonly Case[]): number[] {
  const times = cases.map((): number[] => []);
  // The first run warms up: the engine compiles a module twice, the second time while it runs.
  for (let run = 0; run <= RUNS; run++)
    for (const [c, { action, prepare, check }] of cases.entries()) {
      let spent = 0;
      let calls = 0;
      while (spent < RUN_MS) {
        prepare?.(calls);
        const start = performance.now();
        action(calls);
        spent += performance.now() - start;
        check?.(calls);
        calls++;
      }
      if (run > 0) times[c]!.push((spent * 1000) / calls);
    }
  return times.map((values) => values.sort((a, b) => a - b)[values.length >> 1]!);
}

function measureSegments(segmentBytes: number): Figures {
  const blocks = makeBlocks(segmentBytes);
  const out = new Uint8Array(segmentBytes);
  const expected = new Uint8Array(segmentBytes);
  const outs = Array.from({ length: PARITY_AHEAD }, () => new Uint8Array(segmentBytes));
  const blockOf = (i: number): Block => blocks[i % BLOCKS]!;
  const symbolOf = (i: number): number => FABRIC_SOURCE_SYMBOLS + (i % 180);
  encodeSymbol(blocks[0]!, 100, out);
  encodeByTables(blocks[0]!, 100, expected);
  sameBytes(out, expected, 'parity');

  const lossy = MISSING.map((missing) => {
    const lost = Array.from({ length: missing }, (_, m) => FABRIC_SOURCE_SYMBOLS - missing + m);
    const restored = lost.map(() => new Uint8Array(segmentBytes));
    let parity: ParitySymbol[];
    return {
      prepare: (i: number) => {
        parity = lost.map((_, m) => {
          const bytes = new Uint8Array(segmentBytes);
          encodeSymbol(blockOf(i), symbolOf(i + m), bytes);
          return { symbol: symbolOf(i + m), bytes };
        });
      },
      action: (i: number) => {
        restoreSources(blockOf(i), lost, parity, restored);
      },
      check: (i: number) => {
        for (const [m, j] of lost.entries()) sameBytes(restored[m]!, blockOf(i)[j]!, 'a restored symbol');
      },
    };
  });
  const [plain, one, several, ...restore] = measure([
    { action: (i) => encodeByTables(blockOf(i), symbolOf(i), out) },
    { action: (i) => encodeSymbol(blockOf(i), symbolOf(i), out) },
    {
      action: (i) =>
        encodeParity(
          blockOf(i),
          outs.map((_, m) => symbolOf(i) + m),
          outs,
        ),
    },
    ...lossy,
  ]) as [number, number, number, ...number[]];
  const blockBytes = FABRIC_SOURCE_SYMBOLS * segmentBytes;
  const per = (microseconds: number, symbols: number): Measured => ({
    microseconds,
    bytesPerSecond: Math.round((symbols * blockBytes * 1e6) / microseconds),
  });
  return {
    segmentBytes,
    plain: per(plain, 1),
    one: per(one, 1),
    several: per(several / PARITY_AHEAD, 1),
    restore: Object.fromEntries(MISSING.map((missing, i) => [missing, per(restore[i]!, missing)])),
  };
}

const cell = ({ microseconds, bytesPerSecond }: Measured): string =>
  `${microseconds.toFixed(1).padStart(8)} µs ${(bytesPerSecond / 1e9).toFixed(2).padStart(6)} GB/s`;

console.log(
  `Blocks of ${FABRIC_SOURCE_SYMBOLS} segments, one core, median of ${RUNS} runs; Node.js ${process.version}, ${cpus()[0]?.model ?? 'unknown processor'}.`,
);
const all = SEGMENT_BYTES.map(measureSegments);
for (const { segmentBytes, plain, one, several, restore } of all) {
  console.log(`Segments of ${segmentBytes} B:`);
  console.log(`  a parity symbol, plain tables      ${cell(plain)}`);
  console.log(
    `  a parity symbol                    ${cell(one)}   ${(plain.microseconds / one.microseconds).toFixed(1)} times as fast`,
  );
  console.log(`  each of ${PARITY_AHEAD} parity symbols at once   ${cell(several)}`);
  for (const missing of MISSING)
    console.log(`  restoring ${String(missing).padStart(2)} of a block          ${cell(restore[missing]!)}`);
}
if (process.argv.includes('--json')) {
  const bySize = (value: (figures: Figures) => unknown) =>
    Object.fromEntries(all.map((figures) => [figures.segmentBytes, value(figures)]));
  console.log(
    JSON.stringify({
      multiplyAccumulateBytesPerSecond: Math.min(...all.map(({ one }) => one.bytesPerSecond)),
      encodeSymbolMicroseconds: bySize(({ one }) => one.microseconds),
      encodeTogetherMicroseconds: bySize(({ several }) => several.microseconds),
      restoreMicroseconds: bySize(({ restore }) =>
        Object.fromEntries(MISSING.map((missing) => [missing, restore[missing]!.microseconds])),
      ),
      plainTablesBytesPerSecond: bySize(({ plain }) => plain.bytesPerSecond),
      ratioToPlainTables: bySize(({ plain, one }) => plain.microseconds / one.microseconds),
    }),
  );
}
