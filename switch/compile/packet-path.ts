import type { Program } from '../bmv2/program.ts';
import { DROP_PORT } from './action.ts';
import { calculationName, hashBits } from './calculation.ts';
import { type Code, code, joined, lines, nothing } from './code.ts';
import { condition, number, type Scope } from './expression.ts';
import { type Layout, phv } from './layout.ts';
import type { PacketFields } from './packet-fields.ts';

/** standard_metadata.instance_type of what the replication engine makes. */
const INSTANCE_REPLICATION = 5;
const INSTANCE_NORMAL = 0;

/**
 * The way of a packet through simple_switch (targets/simple_switch/simple_switch.cpp): parser, checksum verification, ingress, then
 * multicast, which wins over drop, or drop, or unicast; for each copy egress, drop or checksum update, deparser.
 */
export function packetPath(program: Program, layout: Layout, fields: PacketFields): Code[] {
  const group = fields.get('multicastGroup');
  const truncated = layout.truncateWord === undefined ? nothing : code`${phv(layout.truncateWord)} = 0;`;
  const lengthWord = layout.lengthWord === undefined ? undefined : phv(layout.lengthWord);
  return [
    code`const saved = new Uint32Array(phv.length);`,
    code`function receive(port, frame_) {
phv.fill(0);
frame = frame_;
length = frame.length;
now = clock.nowUs();
parserError = ${program.errors.noError};
${fields.set('ingressPort', code`port`)}
${fields.set('packetLength', code`length`)}
${lengthWord === undefined ? nothing : code`${lengthWord} = length;`}
${truncated}
${fields.set('ingressTimestamp', code`now`)}
parse(frame, length);
${fields.set('parserError', code`parserError`)}
${verification(program, layout, fields)}
ingress();
${fields.has('multicastGroup') ? code`if (${group} !== 0) { replicate(${group}); return; }` : nothing}
const port_ = ${fields.get('egressSpec')};
if (port_ === ${DROP_PORT}) { statistics.dropped++; return; }
${fields.set('instanceType', code`${INSTANCE_NORMAL}`)}
send(port_, true);
}`,
    code`function replicate(id) {
${fields.set('instanceType', code`${INSTANCE_REPLICATION}`)}
const group = replication.group(id);
if (group === undefined || group.count === 0) { statistics.dropped++; return; }
const { ports, instances, count } = group;
if (count > 1) saved.set(phv);
for (let i = 0; i < count; i++) {
if (i > 0) phv.set(saved);
${fields.set('egressRid', code`instances[i]`)}
send(ports[i], i === count - 1);
}
}`,
    code`function send(port, last) {
${queueMetadata(fields)}
${fields.set('egressTimestamp', code`now`)}
${fields.set('egressPort', code`port`)}
${fields.set('egressSpec', code`${DROP_PORT + 1}`)}
${lengthWord === undefined ? nothing : fields.set('packetLength', lengthWord)}
egress();
if (${fields.get('egressSpec')} === ${DROP_PORT}) { statistics.dropped++; return; }
${updates(program, layout)}
transmit(port, deparse(frame, length, last));
}`,
  ];
}

/** Queues belong to the ports: a packet is enqueued and dequeued at the same moment. */
function queueMetadata(fields: PacketFields): Code {
  const depth = code`queueDepth(port)`;
  return lines([
    fields.set('enqueueTimestamp', code`now`),
    fields.set('enqueueDepth', depth),
    fields.set('dequeueDelta', code`0`),
    fields.set('dequeueDepth', depth),
  ]);
}

function verification(program: Program, layout: Layout, fields: PacketFields): Code {
  const scope: Scope = { layout };
  const checks = program.checksums
    .filter((checksum) => checksum.verify)
    .map(({ target, calculation, condition: only }) => {
      const valid = layout.isValid(target.header);
      const applies = only === undefined ? valid : joined([valid, condition(only, scope)], '&&');
      const actual = number({ kind: 'field', field: target }, scope);
      return code`if (${applies} && Number(${calculationName(calculation)}()) !== ${actual}) checksumError = 1;`;
    });
  if (checks.length === 0) return nothing;
  return lines([code`let checksumError = 0;`, ...checks, fields.set('checksumError', code`checksumError`)]);
}

function updates(program: Program, layout: Layout): Code {
  const scope: Scope = { layout };
  return lines(
    program.checksums
      .filter((checksum) => checksum.update)
      .map(({ target, calculation, condition: only }) => {
        const result = code`${calculationName(calculation)}()`;
        const place = layout.place(target);
        const narrow = target.widthBits <= 32 && hashBits(calculation.algorithm) <= target.widthBits;
        const update = narrow
          ? code`${phv(place)} = ${result};`
          : code`storeWide(phv, ${place}, ${target.widthBits}, BigInt(${result}));`;
        return only === undefined ? update : code`if (${condition(only, scope)}) { ${update} }`;
      }),
  );
}
