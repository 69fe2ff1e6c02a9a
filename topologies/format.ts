import { stringify } from 'yaml';
import type { LinkProperties, Topology } from './types.ts';

/**
 * A topology as a file (see load.ts) that says every port, so that loading it gives the same topology again: for handing one that was changed
 * here to another program.
 */
export function formatTopology(topology: Topology): string {
  return stringify({
    name: topology.name,
    mtu: `${topology.mtuBytes} B`,
    switches: topology.switches.map(({ name, layer }) => ({ name, layer })),
    hosts: topology.hosts.map(({ name, kind, switch: leaf, port, link }) => ({
      name,
      kind,
      switch: leaf,
      port,
      link: formatLink(link),
    })),
    links: topology.links.map(({ a, b, link }) => ({
      between: a.switch,
      and: b.switch,
      ports: [a.port, b.port],
      link: formatLink(link),
    })),
  });
}

function formatLink({ rateBitsPerSecond, delayUs, queueFrames }: LinkProperties): Record<string, string> {
  return { rate: `${rateBitsPerSecond} b/s`, delay: `${delayUs} us`, queue: `${queueFrames} frames` };
}
