/**
 * How many packets per second the embedded switch handles: `npm run bench:switch [-- --json] [-- --in-process]`.
 *
 * In-process, on one core; and, as root on Linux, over veth, next to simple_switch_grpc if that is on PATH. The packets are the fabric's own: 90 % DATA,
 * 5 % NACK and 5 % REPAIR, replicated to one port by p4/build/fabric.json with the entries of a real transfer, the same for all.
 */
import { cpus } from 'node:os';
import { measureInProcess, PACKETS_PER_RUN, RUNS } from './bench-switch/in-process.ts';
import { measureOverVeth, whyNoVeth } from './bench-switch/namespace.ts';
import { FRAME_SIZES, PLACES } from './bench-switch/traffic.ts';

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}

/** Slowest place at each size. */
function inProcess(): Record<string, number> {
  console.log(`In-process, one core, ${RUNS} runs of ${PACKETS_PER_RUN} packets after one to warm up:`);
  return Object.fromEntries(
    FRAME_SIZES.map((frameBytes) => {
      const medians = PLACES.map((place) => {
        const runs = measureInProcess(place, frameBytes);
        const rates = runs.map((run) => run.perSecond);
        const middle = median(rates);
        const range = `${format(Math.min(...rates))}..${format(Math.max(...rates))}`;
        const perCpu = format(median(runs.map((run) => run.perCpuSecond)));
        console.log(
          `  ${place.name.padEnd(38)} ${frameBytes} B ${format(middle).padStart(9)} packets/s (median; ${range}; ${perCpu} per second of processor time)`,
        );
        return middle;
      });
      return [frameBytes, Math.floor(Math.min(...medians))];
    }),
  );
}

function format(rate: number): string {
  return Math.round(rate).toLocaleString('en-US');
}

async function main(): Promise<void> {
  const flags = process.argv.slice(2);
  console.log(
    `fabric.json, ${FRAME_SIZES.join(' and ')} B frames, 90 % DATA, 5 % NACK, 5 % REPAIR, one copy each; Node.js ${process.version}, ${cpus()[0]?.model ?? 'unknown processor'}.`,
  );
  const alone = inProcess();
  const reason = flags.includes('--in-process') ? 'only --in-process was asked for' : whyNoVeth();
  if (reason !== undefined) console.log(`Not over veth: ${reason}.`);
  else console.log('Over veth, load and counting in one process, the switch in another:');
  const veth = reason === undefined ? await measureOverVeth() : undefined;
  for (const size of FRAME_SIZES) {
    const simple = veth?.simpleSwitch?.[size];
    const against =
      simple === undefined
        ? ''
        : `, simple_switch ${format(simple)}: ${(veth!.embedded[size]! / simple).toFixed(1)} times over veth (at the same place at least ${veth!.ratios![size]!.toFixed(1)}), ${(alone[size]! / simple).toFixed(0)} times in-process`;
    const overVeth = veth === undefined ? '' : `, over veth ${format(veth.embedded[size]!)}`;
    console.log(`Slowest place at ${size} B: in-process ${format(alone[size]!)}${overVeth}${against}`);
  }
  if (flags.includes('--json'))
    console.log(
      JSON.stringify({ inProcess: alone, veth: veth?.embedded ?? null, simpleSwitch: veth?.simpleSwitch ?? null }),
    );
}

await main();
