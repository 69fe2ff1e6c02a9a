import { DdfError } from '../../base/errors.ts';
import type { Topology } from '../../topologies/types.ts';
import type { EndRule, RolloutRequest, StartRule } from '../service.ts';

export const DEFAULT_DEADLINE_SECONDS = 120;
const MAX_DEADLINE_SECONDS = 7 * 24 * 3600;
const DEFAULT_START_SECONDS = 20;

/**
 * The servers that a request names, in the topology's order, each once.
 * @throws DdfError INVALID_REQUEST: none, or a Memory Node; NOT_FOUND: a name that the topology has not
 */
export function resolveTargets(topology: Topology, servers: RolloutRequest['servers']): string[] {
  const all = topology.hosts.filter((host) => host.kind === 'gpu-server').map((host) => host.name);
  const wanted = new Set(servers === 'all' ? all : servers);
  if (wanted.size === 0)
    throw new DdfError('INVALID_REQUEST', 'a rollout needs at least one server', {
      where: 'servers',
      remedy: 'Name the servers, or say "all".',
    });
  const known = new Map(topology.hosts.map((host) => [host.name, host.kind]));
  for (const name of wanted) {
    const kind = known.get(name);
    if (kind === undefined)
      throw new DdfError('NOT_FOUND', `the topology ${topology.name} has no server "${name}"`, {
        where: 'servers',
        remedy: 'GET /v1/servers lists the servers.',
      });
    if (kind !== 'gpu-server')
      throw new DdfError('INVALID_REQUEST', `"${name}" is a Memory Node: rollouts are to GPU servers`, {
        where: 'servers',
        remedy: 'GET /v1/servers lists the servers.',
      });
  }
  return all.filter((name) => wanted.has(name));
}

/** @throws DdfError INVALID_REQUEST */
export function deadlineOf(request: RolloutRequest): number {
  const seconds = request.deadlineSeconds ?? DEFAULT_DEADLINE_SECONDS;
  if (!(seconds > 0 && seconds <= MAX_DEADLINE_SECONDS))
    throw new DdfError('INVALID_REQUEST', `a deadline of ${seconds} s is not in 0..${MAX_DEADLINE_SECONDS}`, {
      where: 'deadlineSeconds',
      remedy: `Give seconds from now, more than 0 and at most ${MAX_DEADLINE_SECONDS}.`,
    });
  return seconds;
}

/**
 * The rules of a request with their defaults: see {@link StartRule} and {@link EndRule}.
 * @param targets servers of the rollout
 * @throws DdfError INVALID_REQUEST
 */
export function rulesOf(request: RolloutRequest, targets: number): { start: StartRule; end: EndRule } {
  const { start = { rule: 'all' }, end = { rule: 'all' } } = request;
  const { withinSeconds = DEFAULT_START_SECONDS } = start;
  if (!(withinSeconds > 0 && withinSeconds <= MAX_DEADLINE_SECONDS))
    throw new DdfError('INVALID_REQUEST', `a start within ${withinSeconds} s is not in 0..${MAX_DEADLINE_SECONDS}`, {
      where: 'start.withinSeconds',
      remedy: `Give seconds from now, more than 0 and at most ${MAX_DEADLINE_SECONDS}.`,
    });
  checkQuorum('start', start, targets);
  checkQuorum('end', end, targets);
  return { start: { ...start, withinSeconds }, end };
}

function checkQuorum(where: 'start' | 'end', { rule, servers }: EndRule, targets: number): void {
  if (rule === 'quorum' ? servers !== undefined && servers >= 1 && servers <= targets : servers === undefined) return;
  throw new DdfError(
    'INVALID_REQUEST',
    rule === 'quorum'
      ? `a quorum of ${servers ?? 'no'} servers, of ${targets}`
      : `the rule "${rule}" takes no number of servers`,
    { where: `${where}.servers`, remedy: `A quorum has 1 to ${targets} servers; the other rules have none.` },
  );
}
