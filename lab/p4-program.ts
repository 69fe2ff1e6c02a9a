import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { P4InfoIndex } from '../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../wire/p4runtime/p4info-text.ts';

/** What p4c made of p4/fabric.p4: what switches load, and what controllers know it by. */
export interface P4Program {
  readonly bmv2Json: Uint8Array;
  readonly index: P4InfoIndex;
}

/** Reads p4/build/. */
export function readFabricProgram(): P4Program {
  const read = (name: string): Buffer => readFileSync(fileURLToPath(new URL(`../p4/build/${name}`, import.meta.url)));
  const p4Info = parseP4InfoText(read('fabric.p4info.txtpb').toString('utf8'), 'p4/build/fabric.p4info.txtpb');
  return { bmv2Json: read('fabric.json'), index: new P4InfoIndex(p4Info) };
}
