import { readdirSync, readFileSync } from 'node:fs';
import { DdfError } from '../../base/errors.ts';
import { formatTopology } from '../../topologies/format.ts';
import { loadTopology } from '../../topologies/load.ts';
import { TextDocument } from './mutate.ts';
import { ensure, type FuzzTarget, pick, Tally } from './target.ts';

const FOLDER = new URL('../../topologies/', import.meta.url);

/** Damaged topology files: refused with file and line, or a topology that can be written down and read again. */
export function topologyTexts(): FuzzTarget {
  const documents = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => new TextDocument(readFileSync(new URL(name, FOLDER), 'utf8')));
  const tally = new Tally();
  return {
    casesPerRound: 500,
    tally,
    round: (random, cases, step) => {
      for (let i = 0; i < cases; i++) {
        const text = pick(random, documents).mutate(random);
        step(() => `topology ${text}`);
        try {
          const topology = loadTopology(text, 'fuzz.yaml');
          const again = loadTopology(formatTopology(topology), 'again.yaml');
          ensure(JSON.stringify(again) === JSON.stringify(topology), () => 'written down it is another topology');
          tally.add('accepted');
        } catch (error) {
          if (!(error instanceof DdfError)) throw error;
          ensure(error.code === 'INVALID_TOPOLOGY', () => `refused with ${error.code}: ${error.describe()}`);
          ensure(/^fuzz\.yaml:\d+/.test(error.where ?? ''), () => `refused without a place: ${error.describe()}`);
          tally.add('refused');
        }
      }
    },
  };
}
