/** What the main job prints at its end: figures in, text and JSON out. */

/** Bytes of whole Ethernet frames without FCS, all kinds of packets. */
export interface LinkClassFigures {
  readonly bytes: number;
  /** Payload bytes alone, once over every link of this class that a tree has; no headers, no repair. */
  readonly lowerBoundBytes: number;
  /** Payload bytes if every server that lacks the version fetched the whole object by itself. */
  readonly unicastBytes: number;
}

export interface MainJobFigures {
  readonly object: string;
  readonly version: number;
  readonly servers: number;
  readonly verified: number;
  readonly cohorts: { readonly current: number; readonly delta: number; readonly full: number };
  readonly objectBytes: number;
  /** Of the payload that brings the base version to the version; 0 where there is no base version. */
  readonly deltaBytes: number;
  /** What the sources sent into their links, lost frames included. */
  readonly source: LinkClassFigures;
  /** Links between switches. */
  readonly coreLinks: LinkClassFigures;
  /** Links between hosts and switches, the sources' included, both directions. */
  readonly hostLinks: LinkClassFigures;
  /** Payload bytes that servers read from holders by range, beside the fabric, as the last resort. */
  readonly rangeReadBytes: number;
  readonly nacksSent: number;
  readonly nacksAtSource: number;
  readonly repairSymbols: number;
  readonly lostPackets: number;
  /** Frames handed to the wires. */
  readonly packets: number;
  readonly phases: readonly { readonly name: string; readonly seconds: number }[];
  /** From the request for the rollout to its end. */
  readonly seconds: number;
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** SI units, three or four significant digits: `512 B`, `13.96 MB`. */
export function formatBytes(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  if (unit === 0) return `${Math.round(value)} B`;
  return `${value.toFixed(value < 100 ? 2 : 1)} ${UNITS[unit]}`;
}

/** Thousands apart: `1,234,567`. */
export function formatCount(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',');
}

export function formatSeconds(seconds: number): string {
  return seconds < 0.0995 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
}

/** `1.043 x`, or a dash where there is nothing to compare with. */
function formatRatio(value: number, reference: number): string {
  return reference === 0 ? '-' : `${(value / reference).toFixed(3)} x`;
}

/** Columns two blanks apart; the first to the left, the others to the right. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, i) => Math.max(...rows.map((row) => (row[i] ?? '').length)));
  return rows
    .map((row) =>
      row
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export function reportText(figures: MainJobFigures): string {
  const row = (name: string, { bytes, lowerBoundBytes, unicastBytes }: LinkClassFigures): string[] => [
    name,
    formatBytes(bytes),
    formatBytes(lowerBoundBytes),
    formatRatio(bytes, lowerBoundBytes),
    formatBytes(unicastBytes),
    formatRatio(bytes, unicastBytes),
  ];
  const { cohorts } = figures;
  return [
    formatTable([
      ['bytes on the wires', 'measured', 'lower bound', '', 'unicast', ''],
      row('out of the source', figures.source),
      row('links between switches', figures.coreLinks),
      row('links to hosts', figures.hostLinks),
    ]),
    'Measured: whole frames of all kinds. Lower bound: each payload once over each link of its tree, without headers.',
    `Unicast: ${formatCount(cohorts.delta + cohorts.full)} servers fetch ${formatBytes(figures.objectBytes)} each.`,
    '',
    formatTable([
      ['object', formatBytes(figures.objectBytes)],
      ['delta', figures.deltaBytes === 0 ? 'none' : deltaText(figures)],
      ['NACKs sent by servers', formatCount(figures.nacksSent)],
      ['NACKs that reached the source', formatCount(figures.nacksAtSource)],
      ['repair symbols', formatCount(figures.repairSymbols)],
      ['packets lost on the wires', lostText(figures)],
      ['read by range from holders', formatBytes(figures.rangeReadBytes)],
    ]),
    '',
    formatTable(figures.phases.map(({ name, seconds }) => [name, formatSeconds(seconds)])),
    '',
    `${figures.object} version ${figures.version}: verified by SHA-256 on ${figures.verified}/${figures.servers} servers ` +
      `(${cohorts.current} had it, ${cohorts.delta} by delta, ${cohorts.full} by the full image) in ${formatSeconds(figures.seconds)}`,
  ].join('\n');
}

function deltaText({ deltaBytes, objectBytes }: MainJobFigures): string {
  return `${formatBytes(deltaBytes)} (${((100 * deltaBytes) / objectBytes).toFixed(2)} %)`;
}

function lostText({ lostPackets, packets }: MainJobFigures): string {
  const share = packets === 0 ? 0 : (100 * lostPackets) / packets;
  return `${formatCount(lostPackets)} of ${formatCount(packets)} (${share.toFixed(2)} %)`;
}

/** The object that `--json` prints; bytes and counts are whole numbers. */
export function reportJson(figures: MainJobFigures): Record<string, unknown> {
  return {
    object: figures.object,
    version: figures.version,
    servers: figures.servers,
    verified: figures.verified,
    cohorts: figures.cohorts,
    objectBytes: figures.objectBytes,
    deltaBytes: figures.deltaBytes,
    sourceBytes: figures.source.bytes,
    sourceBytesLowerBound: figures.source.lowerBoundBytes,
    unicastBytes: figures.source.unicastBytes,
    linkBytes: figures.coreLinks.bytes,
    linkBytesLowerBound: figures.coreLinks.lowerBoundBytes,
    linkBytesUnicast: figures.coreLinks.unicastBytes,
    hostLinkBytes: figures.hostLinks.bytes,
    hostLinkBytesLowerBound: figures.hostLinks.lowerBoundBytes,
    hostLinkBytesUnicast: figures.hostLinks.unicastBytes,
    rangeReadBytes: figures.rangeReadBytes,
    nacksSent: figures.nacksSent,
    nacksAtSource: figures.nacksAtSource,
    repairSymbols: figures.repairSymbols,
    lostPackets: figures.lostPackets,
    packets: figures.packets,
    phases: Object.fromEntries(figures.phases.map(({ name, seconds }) => [name, roundSeconds(seconds)])),
    seconds: roundSeconds(figures.seconds),
  };
}

function roundSeconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
