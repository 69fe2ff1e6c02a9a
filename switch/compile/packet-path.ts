import type { FieldList, Program } from '../bmv2/program.ts';
import { calculationName, hashBits } from './calculation.ts';
import { type Code, code, joined, lines, list, name, nothing } from './code.ts';
import type { CompileOptions } from './compile-program.ts';
import { bigint, condition, number, type Scope } from './expression.ts';
import { type Layout, phv, type WordRange } from './layout.ts';
import type { PacketFields } from './packet-fields.ts';
import type { Tracing } from './tracing.ts';

/** standard_metadata.instance_type. */
const INSTANCE_NORMAL = 0;
const INSTANCE_INGRESS_CLONE = 1;
const INSTANCE_EGRESS_CLONE = 2;
const INSTANCE_RECIRCULATED = 4;
const INSTANCE_REPLICATION = 5;
const INSTANCE_RESUBMITTED = 6;

/** Where a packet is dropped, as the tracer numbers it. */
const DROPPED_IN_INGRESS = 0;
const DROPPED_IN_EGRESS = 1;
const DROPPED_AT_QUEUE = 2;

/** So often one packet and what comes of it may start again; simple_switch would go on for ever. */
const MAX_PASSES = 1024;

/**
 * The way of a packet through simple_switch (targets/simple_switch/simple_switch.cpp): parser, checksum verification, ingress, then
 * in this order clone, digest, resubmit, multicast (which wins over drop), drop, unicast; for each copy egress, then clone, drop,
 * checksum update and deparser, recirculation, transmission. What a program never asks for is not generated.
 */
export function packetPath(
  program: Program,
  layout: Layout,
  fields: PacketFields,
  options: CompileOptions,
  tracing: Tracing,
): Code[] {
  const emitter = new PathEmitter(program, layout, fields, options, tracing);
  return emitter.functions();
}

class PathEmitter {
  private readonly program: Program;
  private readonly layout: Layout;
  private readonly fields: PacketFields;
  private readonly options: CompileOptions;
  private readonly tracing: Tracing;
  /** Whether a packet can come back after its pass, or bring others. */
  private readonly again: boolean;

  constructor(program: Program, layout: Layout, fields: PacketFields, options: CompileOptions, tracing: Tracing) {
    this.program = program;
    this.layout = layout;
    this.fields = fields;
    this.options = options;
    this.tracing = tracing;
    const { clones, resubmits, recirculates } = layout.usage;
    this.again = clones || resubmits || recirculates;
  }

  functions(): Code[] {
    const { fields, again } = this;
    const begin = code`phv.fill(0);
turns = 0;
memory = memory_;
start = start_;
length = end - start_;
now = clock.nowUs();
${fields.set('ingressPort', code`port`)}
${fields.set('packetLength', code`length`)}
${this.setLength(code`length`)}
${fields.set('ingressTimestamp', code`now`)}`;
    const receive = again
      ? [
          code`let origin = 0, sole = true;`,
          code`const jobs = [];`,
          code`function receive(port, memory_, start_, end) {
${begin}
jobs.length = 0;
origin = port;
sole = true;
ingressPass();
if (jobs.length > 0) runJobs();
}`,
          code`function ingressPass() {\n${this.ingressPass()}\n}`,
          this.runJobs(),
          this.keeping(),
        ]
      : [code`function receive(port, memory_, start_, end) {\n${begin}\n${this.ingressPass()}\n}`];
    return [
      code`const saved = new Uint32Array(phv.length);`,
      ...receive,
      this.replicate(),
      this.send(),
      ...(this.layout.usage.clones ? [this.cloneIngress(), this.cloneEgress()] : []),
      ...(this.layout.usage.resubmits ? [this.resubmit()] : []),
      ...(this.layout.usage.recirculates ? [this.recirculate()] : []),
    ];
  }

  private ingressPass(): Code {
    const { fields, program, layout } = this;
    const { requests } = layout;
    const group = fields.get('multicastGroup');
    const from = this.again ? code`origin` : code`port`;
    const parse = code`${this.tracing.tell(name('ingress'), from, code`memory.bytes.subarray(start, start + length)`)}
parserError = ${program.errors.noError};
parse(memory.view, start, start + length);
${this.tracing.tell(name('parsed'), code`parsed - start`, code`parserError`)}
${fields.set('parserError', code`parserError`)}
${verification(program, layout, fields)}`;
    return lines([
      parse,
      code`ingress();`,
      this.tracing.tell(name('metadataAfter'), false),
      requests.clone === undefined ? nothing : code`if (${phv(requests.clone)} !== 0) cloneIngress();`,
      this.learning(),
      requests.resubmit === undefined ? nothing : code`if (${phv(requests.resubmit)} !== 0) { resubmit(); return; }`,
      fields.has('multicastGroup') ? code`if (${group} !== 0) { replicate(${group}); return; }` : nothing,
      code`const port_ = ${fields.get('egressSpec')};
if (port_ === ${this.options.dropPort}) { ${this.drop(DROPPED_IN_INGRESS)} }
${fields.set('instanceType', code`${INSTANCE_NORMAL}`)}
send(port_, true);`,
    ]);
  }

  private setLength(length: Code): Code {
    const { lengthWord } = this.layout;
    return lengthWord === undefined ? nothing : code`${phv(lengthWord)} = ${length};`;
  }

  /** One message per packet, of the list that was asked for last. */
  private learning(): Code {
    const { digest } = this.layout.requests;
    if (digest === undefined) return nothing;
    const scope: Scope = { layout: this.layout };
    const cases = this.program.learnLists
      .filter((each) => each.fields.every((field) => this.layout.isLive(field)))
      .map(({ id, index, fields }) => {
        const values = fields.map((field) => {
          const value = bigint({ kind: 'field', field }, scope);
          return field.signed ? code`BigInt.asUintN(${field.widthBits}, ${value})` : value;
        });
        return code`case ${id}: learn(${index}, [${list(values)}]); break;`;
      });
    return code`if (${phv(digest)} !== 0) switch (${phv(digest)}) {\n${cases}\n}`;
  }

  /** Copies of the packet as it is, without what it asked for. */
  private replicate(): Code {
    return code`function replicate(id) {
${this.fields.set('instanceType', code`${INSTANCE_REPLICATION}`)}
const group = replication.group(id);
${this.tracing.tell(name('multicast'), code`id`, code`group === undefined ? 0 : group.count`)}
if (group === undefined || group.count === 0) { statistics.dropped++; return; }
const { ports, instances, count } = group;
${this.clearRequests()}
if (count > 1) saved.set(phv);
for (let i = 0; i < count; i++) {
if (i > 0) phv.set(saved);
${this.fields.set('egressRid', code`instances[i]`)}
send(ports[i], i === count - 1);
}
}`;
  }

  private send(): Code {
    const { fields, program, layout, options } = this;
    const { requests, lengthWord } = layout;
    const last = this.again ? code`last && sole` : code`last`;
    const truncate =
      requests.truncate === undefined
        ? nothing
        : code`const t = ${phv(requests.truncate)}; if (t !== 0 && t - 1 < outEnd - outStart) outEnd = outStart + t - 1;`;
    return code`function send(port, last) {
${fields.has('priority') ? code`if (${fields.get('priority')} >= ${options.priorityQueues}) { ${this.drop(DROPPED_AT_QUEUE)} }` : nothing}
${queueMetadata(fields)}
${fields.set('egressTimestamp', code`now`)}
${fields.set('egressPort', code`port`)}
${fields.set('egressSpec', code`${options.dropPort + 1}`)}
${lengthWord === undefined ? nothing : fields.set('packetLength', phv(lengthWord))}
${this.tracing.tell(name('egress'), code`port`)}
egress();
${this.tracing.tell(name('metadataAfter'), true)}
${requests.clone === undefined ? nothing : code`if (${phv(requests.clone)} !== 0) cloneEgress();`}
if (${fields.get('egressSpec')} === ${options.dropPort}) { ${this.drop(DROPPED_IN_EGRESS)} }
${updates(program, layout)}
deparse(${last});
${requests.recirculate === undefined ? nothing : code`if (${phv(requests.recirculate)} !== 0) { recirculate(); return; }`}
${truncate}
transmit(port, out, outStart, outEnd);
}`;
  }

  private drop(place: number): Code {
    return code`statistics.dropped++; ${this.tracing.tell(name('dropped'), place)} return;`;
  }

  /**
   * The packet as it came in is parsed once more, with no metadata but its port. The copies go before the packet, as they would in
   * the queue of a port.
   */
  private cloneIngress(): Code {
    return code`function cloneIngress() {
${this.takeSession(false)}
const original = phv.slice(), parsed_ = parsed;
phv.fill(0);
${this.setLength(code`length`)}
${this.fields.set('ingressPort', code`origin`)}
parse(memory.view, start, start + length);
${fill(this.layout.metadataWords)}
keep(list, original);
${this.fields.set('instanceType', code`${INSTANCE_INGRESS_CLONE}`)}
sendClones(session);
phv.set(original);
parsed = parsed_;
}
function sendClones(session) {
const { group, truncateBytes } = session;
const { ports, instances, count } = group;
const clone = phv.slice();
for (let i = 0; i < count; i++) {
if (i > 0) phv.set(clone);
${this.truncateClone()}
${this.fields.set('egressRid', code`instances[i]`)}
send(ports[i], false);
}
}`;
  }

  /** The headers as egress left them; the copies' egress follows when the packet is through. */
  private cloneEgress(): Code {
    return code`function cloneEgress() {
${this.takeSession(true)}
const original = phv.slice();
${fill(this.layout.metadataWords)}
${this.clearRequests()}
keep(list, original);
${this.fields.set('instanceType', code`${INSTANCE_EGRESS_CLONE}`)}
sole = false;
jobs.push({ session, memory, start, length, parsed, origin, phv: phv.slice() });
phv.set(original);
}`;
  }

  private takeSession(egress: boolean): Code {
    const { clone, cloneKeeps } = this.layout.requests;
    const count = code`session === undefined ? 0 : session.group.count`;
    return code`const session = replication.session(${phv(clone!)} - 1), list = ${phv(cloneKeeps!)};
${this.tracing.tell(name('clone'), egress, code`${phv(clone!)} - 1`, count)}
${phv(clone!)} = 0;
if (session === undefined) return;`;
  }

  private truncateClone(): Code {
    const { truncate } = this.layout.requests;
    return code`if (truncateBytes !== 0) ${phv(truncate!)} = truncateBytes + 1;`;
  }

  private resubmit(): Code {
    return code`function resubmit() {
${this.tracing.tell(name('resubmit'))}
const original = phv.slice(), list = ${phv(this.layout.requests.resubmit!)};
phv.fill(0);
keep(list, original);
${this.fields.set('instanceType', code`${INSTANCE_RESUBMITTED}`)}
${this.restart(code`memory`, code`start`, code`length`)}
}`;
  }

  private recirculate(): Code {
    return code`function recirculate() {
${this.tracing.tell(name('recirculate'), code`outEnd - outStart`)}
const original = phv.slice(), list = ${phv(this.layout.requests.recirculate!)};
phv.fill(0);
keep(list, original);
${this.fields.set('instanceType', code`${INSTANCE_RECIRCULATED}`)}
${this.restart(code`out`, code`outStart`, code`outEnd - outStart`)}
}`;
  }

  private restart(memory: Code, start: Code, length: Code): Code {
    return lines([
      this.fields.set('packetLength', length),
      this.setLength(length),
      code`jobs.push({ session: undefined, memory: ${memory}, start: ${start}, length: ${length}, parsed: 0, origin, phv: phv.slice() });`,
    ]);
  }

  private runJobs(): Code {
    const clones = this.layout.usage.clones
      ? code`if (job.session !== undefined) sendClones(job.session); else`
      : nothing;
    return code`function runJobs() {
for (let passes = 1; jobs.length > 0; passes++) {
if (passes > ${MAX_PASSES}) endlessPacket();
const job = jobs.shift();
({ memory, start, length, parsed, origin } = job);
phv.set(job.phv);
${clones} ingressPass();
}
}`;
  }

  /** `keep(list, from)`: copies the fields of a list into the vector. */
  private keeping(): Code {
    const cases = this.program.fieldLists
      .filter((each) => each.id !== 0)
      .map((each) => code`case ${each.id}: ${this.copyFields(each)} break;`);
    return code`function keep(list, from) {\nswitch (list) {\n${cases}\n}\n}`;
  }

  private copyFields(kept: FieldList): Code {
    return lines(
      kept.fields
        .filter((field) => this.layout.isLive(field))
        .flatMap((field) => {
          const place = this.layout.place(field);
          return Array.from(
            { length: Math.ceil(field.widthBits / 32) },
            (_, word) => code`${phv(place + word)} = ${name('from')}[${place + word}];`,
          );
        }),
    );
  }

  private clearRequests(): Code {
    return fill(this.layout.requestWords);
  }
}

function fill({ start, end }: WordRange): Code {
  return start === end ? nothing : code`phv.fill(0, ${start}, ${end});`;
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
