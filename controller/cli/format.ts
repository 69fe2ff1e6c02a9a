import type { RolloutView, SwitchView, VersionView } from '../service.ts';

/** Text for people; every command prints its JSON instead when asked. */

/** Columns of plain text, padded; numbers to the right. */
export function table(header: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = [header, ...rows].map((row) => row.map(String));
  const widths = header.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  const numeric = header.map((_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number'));
  return cells
    .map((row) =>
      row
        .map((cell, i) => (numeric[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** Decimal units (SI), three significant digits: 14.0 MB. */
export function bytes(value: number): string {
  let unit = 0;
  let scaled = value;
  while (scaled >= 1000 && unit < UNITS.length - 1) {
    scaled /= 1000;
    unit++;
  }
  return unit === 0 ? `${value} B` : `${scaled.toPrecision(3)} ${UNITS[unit]}`;
}

/** A bar of `width` characters for a fraction in 0..1. */
export function bar(fraction: number, width = 30): string {
  const full = Math.round(Math.min(1, Math.max(0, fraction)) * width);
  return `[${'#'.repeat(full)}${'.'.repeat(width - full)}]`;
}

export function versionText(version: VersionView): string {
  return [
    `${version.object} version ${version.version}: ${bytes(version.sizeBytes)}, ${version.holders} ${version.holders === 1 ? 'holder' : 'holders'}, sha256 ${version.rootSha256}`,
    ...version.payloads.map(
      ({ base, sizeBytes, memoryNodes }) =>
        `  ${base === null ? 'full image' : `delta from ${base}`}: ${bytes(sizeBytes)} on ${memoryNodes.join(', ')}`,
    ),
  ].join('\n');
}

export function rolloutText(rollout: RolloutView): string {
  const { id, object, version, state, verified, plan, phases, error, servers } = rollout;
  const seconds = phases.map((phase) => `${phase.state} ${phase.seconds.toFixed(2)} s`).join(', ');
  const failed = servers.filter((server) => server.error !== null);
  return [
    `rollout ${id}: ${object} version ${version} is ${state}, ${verified} of ${plan.targets} servers verified`,
    ...(seconds === '' ? [] : [`  ${seconds}`]),
    ...rollout.transfers.map(
      (transfer) =>
        `  transfer ${transfer.label} (${transfer.base === null ? 'full image' : `delta from ${transfer.base}`}, ` +
        `${bytes(transfer.payloadBytes)} from ${transfer.source}): ${transfer.state}, ${transfer.complete} of ${transfer.receivers} complete` +
        (transfer.error === null ? '' : `; ${transfer.error.code}: ${transfer.error.message}`),
    ),
    ...failed.map((server) => `  ${server.name}: ${server.error}`),
    ...(error === null ? [] : [`  ${error}`]),
  ].join('\n');
}

export function overviewText(switches: readonly SwitchView[], rollouts: readonly RolloutView[]): string {
  return [
    table(
      ['SWITCH', 'LAYER', 'STATE', 'ENTRIES', 'DROPS'],
      switches.map(({ name, layer, state, entries, drops }) => [
        name,
        layer,
        state,
        entries,
        drops.map(({ reason, packets }) => `${reason} ${packets}`).join(', ') || '-',
      ]),
    ),
    '',
    rollouts.length === 0 ? 'no rollouts' : rollouts.map(rolloutText).join('\n'),
  ].join('\n');
}
