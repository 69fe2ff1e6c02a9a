import { expect, it } from 'vitest';
import { cellsOf, portCounts } from '../../../controller/fabric/port-counters.ts';
import { portCounterCell } from '../../../controller/tables/telemetry.ts';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { FABRIC_TYPE_DATA, FABRIC_TYPE_NACK, KIND_IPV4 } from '../../../p4/build/constants.ts';
import { leafSpine } from '../planner/fixture.ts';

const graph = new FabricGraph(leafSpine());
const HOST_PORT = graph.host('gpu01').port;
const FABRIC_PORT = graph.hopsFrom('leaf1')[0]!.port;

function count(direction: 'ingress' | 'egress', port: number, tagged: boolean, kind: number): number | undefined {
  const cells = new Map([[portCounterCell(port, tagged, kind), { packets: 10n, bytes: 1000n }]]);
  const counts = portCounts(graph, 'leaf1', direction, cells);
  expect(counts.map((c) => [c.switch, c.port, c.direction, c.kind, c.packets])).toEqual([
    ['leaf1', port, direction, kind, 10],
  ]);
  return counts[0]?.bytes;
}

it('takes what came in as it was', () => {
  expect(count('ingress', HOST_PORT, false, FABRIC_TYPE_DATA)).toBe(1000);
  expect(count('ingress', FABRIC_PORT, true, FABRIC_TYPE_DATA)).toBe(1000);
});

it('adds the tag that the first switch pushes', () => {
  expect(count('egress', FABRIC_PORT, false, FABRIC_TYPE_DATA)).toBe(1000 + 10 * 18);
});

it('takes off the tag that the last switch pops', () => {
  expect(count('egress', HOST_PORT, true, FABRIC_TYPE_NACK)).toBe(1000 - 10 * 18);
  expect(count('egress', HOST_PORT, true, KIND_IPV4)).toBe(1000 - 10 * 18);
});

it('changes nothing where the tag stays or there is none', () => {
  expect(count('egress', FABRIC_PORT, true, FABRIC_TYPE_DATA)).toBe(1000);
  expect(count('egress', HOST_PORT, false, FABRIC_TYPE_DATA)).toBe(1000);
  expect(count('egress', FABRIC_PORT, false, KIND_IPV4)).toBe(1000);
});

it('asks for the cells of connected ports only, and adds up a kind that came with and without a tag', () => {
  expect(cellsOf(graph, 'leaf1')).toHaveLength(graph.portsOf('leaf1').length * 12 * 2);
  const cells = new Map(
    [false, true].map((tagged) => [portCounterCell(HOST_PORT, tagged, FABRIC_TYPE_DATA), { packets: 1n, bytes: 100n }]),
  );
  expect(portCounts(graph, 'leaf1', 'egress', cells)).toEqual([
    { switch: 'leaf1', port: HOST_PORT, direction: 'egress', kind: FABRIC_TYPE_DATA, packets: 2, bytes: 182 },
  ]);
});
