import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DdfError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { BUILD_DIRECTORY } from '../../scripts/p4-build.ts';
import { checkProgramMatches } from '../../switch/server/program-check.ts';
import { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../wire/p4runtime/p4info-text.ts';
import { PacketMetadataCodec } from '../../wire/p4runtime/packet-metadata.ts';
import { encode } from '../switch/program-builder.ts';
import { WatchedDevice } from './device.ts';
import { fillTables } from './entries.ts';
import { JsonDocument, mutateBytes, randomBytes, TextDocument } from './mutate.ts';
import { SMALL_PROGRAMS } from './small-programs.ts';
import { ensure, type FuzzTarget, pick, Tally } from './target.ts';

interface Sample {
  readonly document: JsonDocument;
  readonly bytes: Uint8Array;
}

function sample(json: unknown): Sample {
  return { document: new JsonDocument(json), bytes: encode(json) };
}

/** What p4c wrote, without the places in the source: they are a third of the file, and nothing reads them. */
function compiled(path: string | URL): Sample {
  const withoutPlaces = (key: string, value: unknown): unknown => (key === 'source_info' ? undefined : value);
  return sample(JSON.parse(readFileSync(path, 'utf8'), withoutPlaces));
}

function compiledIn(folder: string): Sample[] {
  const url = new URL(folder, import.meta.url);
  return readdirSync(url)
    .filter((name) => name.endsWith('.json'))
    .map((name) => compiled(new URL(name, url)));
}

const PACKETS_PER_PROGRAM = 4;
/** Large programs take a hundred times as long as small ones and have much the same places to be wrong at. */
const MEDIUM_SHARE = 0.2;
const LARGE_SHARE = 0.02;

/** Damaged bmv2 JSON: refused with a code and a path, or it runs packets. */
export function bmv2Programs(): FuzzTarget {
  const small = SMALL_PROGRAMS.map(sample);
  const medium = [...compiledIn('../packet/programs/'), ...compiledIn('../conformance/program/')];
  const large = [compiled(join(BUILD_DIRECTORY, 'fabric.json')), ...compiledIn('program/')];
  const tally = new Tally();
  return {
    tally,
    casesPerRound: 500,
    round: (random, cases, step) => {
      for (let i = 0; i < cases; i++) {
        const size = random.float();
        const chosen = size < LARGE_SHARE ? large : size < LARGE_SHARE + MEDIUM_SHARE ? medium : small;
        const bytes = damagedProgram(random, pick(random, chosen));
        step(() => `program ${new TextDecoder().decode(bytes.subarray(0, 20_000))}`);
        const watched = new WatchedDevice(random.fork(`device ${i}`));
        const loadable = loadedOrRefused(watched, bytes);
        tally.add(loadable === undefined ? 'refused' : 'ran');
        if (loadable === undefined) continue;
        const program = watched.device.load(loadable);
        fillTables(random, program, 2);
        program.setMulticastGroup(1, [
          { port: 1, instance: 0 },
          { port: 2, instance: 1 },
        ]);
        for (const session of [0, 1, 5]) program.setCloneSession(session, [{ port: 3, instance: 2 }], 0);
        for (let n = 0; n < PACKETS_PER_PROGRAM; n++)
          watched.receive(random.below(512), randomBytes(random, random.below(100)));
      }
    },
  };
}

function damagedProgram(random: Random, { document, bytes }: Sample): Uint8Array {
  return random.chance(0.9) ? encode(document.mutate(random)) : mutateBytes(random, bytes);
}

function loadedOrRefused(watched: WatchedDevice, bytes: Uint8Array) {
  try {
    return watched.device.compile(bytes);
  } catch (error) {
    if (!(error instanceof DdfError)) throw error;
    ensure(
      error.code === 'INVALID_PROGRAM' || error.code === 'UNSUPPORTED_PROGRAM',
      () => `refused with ${error.code}`,
    );
    ensure(error.where?.startsWith('$') ?? false, () => `refused without a path: ${error.describe()}`);
    return undefined;
  }
}

/** Damaged P4Info: refused with a code and a place, or it can be indexed and held against its program. */
export function p4InfoTexts(): FuzzTarget {
  const watched = new WatchedDevice({} as Random);
  const texts = [
    [join(BUILD_DIRECTORY, 'fabric.p4info.txtpb'), join(BUILD_DIRECTORY, 'fabric.json')],
    ...['program/parsers', '../conformance/program/conformance', '../conformance/program/translation'].map((name) =>
      ['p4info.txtpb', 'json'].map((ending) => new URL(`${name}.${ending}`, import.meta.url)),
    ),
  ].map(([text, json]) => ({
    document: new TextDocument(readFileSync(text!, 'utf8')),
    control: watched.device.compile(readFileSync(json!)).control,
  }));
  const tally = new Tally();
  return {
    tally,
    casesPerRound: 500,
    round: (random, cases, step) => {
      for (let i = 0; i < cases; i++) {
        const { document, control } = pick(random, texts);
        const text = document.mutate(random);
        step(() => `P4Info ${text.slice(0, 20_000)}`);
        try {
          const info = new P4InfoIndex(parseP4InfoText(text, 'fuzz.p4info'));
          for (const header of info.controllerHeaders) new PacketMetadataCodec(header);
          checkProgramMatches(info, control);
          tally.add('accepted');
        } catch (error) {
          if (!(error instanceof DdfError)) throw error;
          tally.add(error.code);
          if (error.code === 'INVALID_FILE')
            ensure(
              /^fuzz\.p4info:\d+:\d+$/.test(error.where ?? ''),
              () => `refused without a place: ${error.describe()}`,
            );
          else
            ensure(
              ['INVALID_PROGRAM', 'PROGRAM_MISMATCH', 'UNSUPPORTED_PROGRAM'].includes(error.code),
              () => `refused with ${error.code}: ${error.describe()}`,
            );
        }
      }
    },
  };
}
