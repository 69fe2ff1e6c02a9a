import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DdfError } from '../base/errors.ts';
import { loadTopology } from '../topologies/load.ts';
import type { Topology } from '../topologies/types.ts';

const DEFAULT_TOPOLOGY = join(dirname(dirname(fileURLToPath(import.meta.url))), 'topologies', 'leaf-spine.yaml');

/**
 * @param option who names the file, for messages
 * @param file undefined: the topology that comes with the project
 * @throws DdfError INVALID_FILE, INVALID_TOPOLOGY
 */
export async function readTopology(option: string, file: string | undefined): Promise<Topology> {
  const path = file === undefined ? DEFAULT_TOPOLOGY : resolve(file);
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new DdfError(
      'INVALID_FILE',
      `${option}: the file cannot be read (${(cause as NodeJS.ErrnoException).code})`,
      {
        where: path,
        remedy: 'Check the path and its permissions.',
        cause,
      },
    );
  });
  return loadTopology(text, file ?? 'topologies/leaf-spine.yaml');
}

/** Topologies without them are sound, but there is nothing to do on them. */
export function requireHosts({ name, hosts }: Topology, file: string | undefined): void {
  for (const needed of ['memory-node', 'gpu-server'] as const)
    if (!hosts.some(({ kind }) => kind === needed))
      throw new DdfError('INVALID_TOPOLOGY', `the topology ${name} has no ${needed}`, {
        where: file ?? name,
        remedy: `The main job needs at least one host of the kind ${needed}.`,
      });
}

/** How many of each kind of switch and host there are: `2 x spine, 4 x leaf, ...`. */
export function countsText({ switches, hosts }: Topology): string {
  const counts = new Map<string, number>();
  for (const { layer } of switches) counts.set(layer, (counts.get(layer) ?? 0) + 1);
  for (const { kind } of hosts) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => `${count} x ${kind}`).join(', ');
}
