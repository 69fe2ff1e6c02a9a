import { fileURLToPath } from 'node:url';
import { PORT_CPU } from '../../p4/build/constants.ts';
import type { PortReport, StandaloneReport } from '../../switch/standalone.ts';
import type { MininetPlan, PlannedNode } from '../../topologies/mininet/plan.ts';

export const SWITCH_KINDS = ['embedded', 'bmv2'] as const;
export type SwitchKind = (typeof SWITCH_KINDS)[number];

export const P4RUNTIME_PORT = 9559;
export const DDF = fileURLToPath(new URL('../ddf.mjs', import.meta.url));

export interface SwitchLoss {
  /** Of the frames on host ports, in each direction. */
  readonly percent: number;
  readonly seed: number;
}

/**
 * The command of one switch, empty at first: the controller gives it its program. Only the embedded one can lose frames by itself: on host ports, in
 * both directions.
 */
export function switchCommand(
  kind: SwitchKind,
  plan: MininetPlan,
  node: PlannedNode,
  loss: SwitchLoss,
): readonly string[] {
  const ports = plan.links.flatMap(({ a, b }) =>
    [a, b].flatMap((end) =>
      end.node === node.name
        ? [{ ...end, isHostPort: plan.nodes.some(({ name, kind: is }) => name === a.node && is === 'host') }]
        : [],
    ),
  );
  const address = `${node.management.address}:${P4RUNTIME_PORT}`;
  const device = ['--device-id', String(node.deviceId)];
  const interfaces = ports.flatMap(({ port, device: name }) => ['-i', `${port}@${name}`]);
  if (kind === 'bmv2')
    return [
      'simple_switch_grpc',
      '--no-p4',
      ...device,
      ...interfaces,
      '--log-console',
      '-L',
      'warn',
      '--',
      '--cpu-port',
      String(PORT_CPU),
      '--grpc-server-addr',
      address,
    ];
  const lossy = ports.filter(({ isHostPort }) => isHostPort && loss.percent > 0);
  return [
    process.execPath,
    DDF,
    'switch',
    '--no-p4',
    ...device,
    ...interfaces,
    '--cpu-port',
    String(PORT_CPU),
    '--grpc',
    address,
    '--json',
    ...lossy.flatMap(({ port }) => ['--loss', `${port}=${loss.percent}`]),
    '--seed',
    // Switches with one seed would lose the same frames.
    String((loss.seed + node.deviceId) % 2 ** 32),
  ];
}

/** What `ddf switch --json` says of its ports at its end, as far as frames were lost there. */
export interface SwitchLosses {
  /** By --loss. */
  readonly onPurpose: number;
  /** The switch was too slow for its ring, or a port for its queue. */
  readonly overflow: number;
}

/** @param log all that a switch has written; undefined when the last line is no report */
export function lossesIn(log: string): SwitchLosses | undefined {
  const line = log.trimEnd().split('\n').at(-1) ?? '';
  if (!line.startsWith('{"deviceId"')) return undefined;
  const { ports } = JSON.parse(line) as StandaloneReport;
  const sum = (count: (port: PortReport) => number): number => ports.reduce((all, port) => all + count(port), 0);
  return {
    onPurpose: sum(({ impairedIn, impairedOut }) => (impairedIn?.lost ?? 0) + (impairedOut?.lost ?? 0)),
    overflow: sum(({ ringDropped, queueDropped }) => ringDropped + queueDropped),
  };
}
