import type { PacketTrace, TracedValue, TraceEvent } from './events.ts';

/** As simple_switch numbers standard_metadata.instance_type. */
const INSTANCE_TYPES = [
  'normal',
  'ingress clone',
  'egress clone',
  'coalesced',
  'recirculated',
  'replicated',
  'resubmitted',
];

/** Frames are shown up to so many bytes. */
const SHOWN_BYTES = 64;

export interface TraceTextOptions {
  /**
   * What a value of a metadata field means to this program, such as the name of a numbered drop reason; `undefined`: nothing.
   * Default: no value means anything.
   */
  readonly meaning?: (field: string, value: bigint) => string | undefined;
}

/** A trace for people: one event a line, what belongs to a pipeline indented below it. */
export function formatTrace(trace: PacketTrace, options: TraceTextOptions = {}): string {
  const lines = [`packet on port ${trace.port} at ${trace.atUs} us`];
  for (const event of trace.events) lines.push(...describe(event, options).map((line, i) => indented(event, line, i)));
  return `${lines.join('\n')}\n`;
}

function indented(event: TraceEvent, line: string, index: number): string {
  const outer = event.kind === 'ingress' || event.kind === 'egress';
  return `${' '.repeat((outer ? 2 : 4) + (index > 0 ? 4 : 0))}${line}`;
}

function describe(event: TraceEvent, options: TraceTextOptions): string[] {
  switch (event.kind) {
    case 'ingress': {
      const type = event.instanceType === 0 ? '' : `, ${typeName(event.instanceType)}`;
      return [`ingress port ${event.port}${type}, ${event.bytes} bytes: ${shortened(event.frame)}`];
    }
    case 'parser-state':
      return [`parser state ${event.state}`];
    case 'parsed': {
      const error = event.error === undefined ? '' : `, error ${event.error}`;
      return [`parsed ${event.bytes} bytes: ${event.headers.join(', ') || 'no header'}${error}`];
    }
    case 'table':
      return describeTable(event);
    case 'action':
      return [`action ${event.action}`];
    case 'condition':
      return [`if (${event.condition}): ${event.holds}`];
    case 'metadata':
      return [`after ${event.after}: ${values(event.values, options) || 'all metadata zero'}`];
    case 'clone':
      return [`clone at ${event.at} to session ${event.session}: ${copies(event.copies)}`];
    case 'digest':
      return [`digest ${event.digest}: ${event.values.join(', ')}`];
    case 'resubmit':
      return ['resubmit'];
    case 'recirculate':
      return [`recirculate ${event.bytes} bytes`];
    case 'multicast':
      return [`multicast to group ${event.group}: ${copies(event.copies)}`];
    case 'drop':
      return [event.at === 'queue' ? 'drop: no queue of this priority' : `drop after ${event.at}`];
    case 'egress': {
      const type = event.instanceType === 0 ? '' : `, ${typeName(event.instanceType)}`;
      return [`egress port ${event.port}, instance ${event.instance}${type}`];
    }
    case 'log':
      return [`log: ${event.message}`];
    case 'transmit':
      return [
        `transmit on port ${event.port}, ${event.bytes} bytes (${event.headers.join(', ')}): ${shortened(event.frame)}`,
      ];
    case 'fault':
      return [`fault: ${event.message}`];
    case 'cut':
      return ['... and more than a trace holds'];
  }
}

function describeTable(event: Extract<TraceEvent, { kind: 'table' }>): string[] {
  const { table, keys, hit, entry, action } = event;
  const key = keys.map(({ name, value }) => `${name}=${value}`).join(' ');
  const outcome = hit === undefined ? '' : hit ? ': hit' : ': miss';
  const lines = [`table ${table}${key === '' ? '' : ` [${key}]`}${outcome}`];
  if (entry !== undefined) {
    const priority = entry.priority === 0 ? '' : `, priority ${entry.priority}`;
    lines.push(`entry ${entry.match.join(' ')}${priority}`);
  }
  const parameters = action?.parameters.map(({ name, value }) => `${name}=${value}`).join(', ');
  lines.push(action === undefined ? 'no action' : `action ${action.name}(${parameters})`);
  return lines;
}

function values(all: readonly TracedValue[], { meaning }: TraceTextOptions): string {
  return all
    .map(({ name, value }) => {
      const means = meaning?.(name, BigInt(value));
      return `${name}=${value}${means === undefined ? '' : ` (${means})`}`;
    })
    .join(' ');
}

function typeName(instanceType: number): string {
  return INSTANCE_TYPES[instanceType] ?? `type ${instanceType}`;
}

function copies(count: number): string {
  return count === 1 ? '1 copy' : `${count} copies`;
}

function shortened(hex: string): string {
  return hex.length <= 2 * SHOWN_BYTES ? hex : `${hex.slice(0, 2 * SHOWN_BYTES)}...`;
}
