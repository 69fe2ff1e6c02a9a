import { readFileSync, writeFileSync } from 'node:fs';
import { GENERATED_FILES, generateMessages } from '../wire/generate.ts';

/** Writes the message types that are generated from the schemas in wire/; with --check says which are out of date and exits 1. */
const check = process.argv.includes('--check');
for (const file of GENERATED_FILES) {
  const url = new URL(`../${file.path}`, import.meta.url);
  const text = generateMessages(file);
  if (!check) {
    writeFileSync(url, text);
  } else if (readFileSync(url, 'utf8') !== text) {
    console.error(`${file.path} is out of date. Run: npx tsx scripts/wire-generate.ts`);
    process.exitCode = 1;
  }
}
