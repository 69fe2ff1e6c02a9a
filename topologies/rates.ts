import { DdfError } from '../base/errors.ts';
import type { LinkProperties, Topology } from './types.ts';

/**
 * The same fabric, slower or faster as a whole: the fastest host link gets `bitsPerSecond`, every other link the same share of it as before (at
 * least 1 kb/s).
 * @throws DdfError INVALID_TOPOLOGY when there is no host to go by
 */
export function withHostRate(topology: Topology, bitsPerSecond: number): Topology {
  if (topology.hosts.length === 0)
    throw new DdfError('INVALID_TOPOLOGY', 'the topology has no hosts', { where: topology.name });
  const fastest = topology.hosts.reduce((rate, { link }) => Math.max(rate, link.rateBitsPerSecond), 0);
  const scaled = (link: LinkProperties): LinkProperties => ({
    ...link,
    rateBitsPerSecond: Math.max(1000, Math.round((link.rateBitsPerSecond * bitsPerSecond) / fastest)),
  });
  return {
    ...topology,
    hosts: topology.hosts.map((host) => ({ ...host, link: scaled(host.link) })),
    links: topology.links.map((core) => ({ ...core, link: scaled(core.link) })),
  };
}

/** The same fabric with one delay on every link: for networks that cannot delay packets, what their switches and hosts take instead. */
export function withLinkDelay(topology: Topology, delayUs: number): Topology {
  return {
    ...topology,
    hosts: topology.hosts.map((host) => ({ ...host, link: { ...host.link, delayUs } })),
    links: topology.links.map((core) => ({ ...core, link: { ...core.link, delayUs } })),
  };
}
