import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import { TestDevice } from '../switch/test-device.ts';

/**
 * programs/path.p4 asks for one thing per packet and reports what egress saw. What is expected here is what simple_switch_grpc sends
 * for the same packets.
 */
const PROGRAM = new URL('programs/path.json', import.meta.url);

const NORMAL = 0;
const INGRESS_CLONE = 1;
const EGRESS_CLONE = 2;
const REPLICATED = 5;

const CLONE_PORT = 3;
const CLONE_INSTANCE = 7;
const LENGTH = 20;
const PAYLOAD = Array.from({ length: LENGTH - 2 }, (_, i) => 0xe0 + i);

/** Of a packet from port 4 the parser takes one byte more. */
const PORT_WITH_EXTRA = 4;

interface Report {
  readonly port: number;
  readonly value: number;
  readonly extra: boolean;
  readonly type: number;
  readonly ingress: number;
  readonly rid: number;
  readonly length: number;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  /** How often a field was incremented that no list keeps: 0 if ingress never ran on this metadata. */
  readonly notKept: number;
  readonly noTimestamp: boolean;
  /** The bytes behind the newest report. */
  readonly rest: number[];
}

let device: TestDevice;
let digests: string[];

beforeEach(() => {
  device = new TestDevice(readFileSync(PROGRAM));
  device.nowUs = 1000;
  device.control.setCloneSession(5, [{ port: CLONE_PORT, instance: CLONE_INSTANCE }], 0);
  device.control.setMulticastGroup(1, [
    { port: 1, instance: 11 },
    { port: 6, instance: 12 },
  ]);
  digests = [];
  device.control.onDigest = ({ name }, values) => digests.push(`${name} ${values}`);
});

function send(op: number, port = 9, value = 5): Report[] {
  return device.run(port, [op, value, ...PAYLOAD]).map((sent) => {
    // The first byte of a report is a small number.
    const extra = sent.bytes[2] === PAYLOAD[0];
    const [type, ingress, rid, high, low, a, b, c, flags, ...rest] = sent.bytes.slice(extra ? 3 : 2);
    expect(sent.bytes[0]).toBe(op);
    expect(flags! & 0x40).toBe(0);
    return {
      port: sent.port,
      value: sent.bytes[1]!,
      extra: (flags! & 0x20) !== 0,
      type: type!,
      ingress: ingress!,
      rid: rid!,
      length: (high! << 8) | low!,
      a: a!,
      b: b!,
      c: c!,
      notKept: flags! & 0x0f,
      noTimestamp: (flags! & 0x80) !== 0,
      rest,
    };
  });
}

/** The packet that nothing unusual was asked for. */
const plain = {
  port: 2,
  value: 5,
  extra: false,
  type: NORMAL,
  ingress: 9,
  rid: 0,
  length: LENGTH,
  a: 5,
  b: 1,
  c: 0x77,
  notKept: 1,
  noTimestamp: false,
  rest: PAYLOAD,
};
/** What a clone at ingress is without any list. */
const ingressClone = {
  ...plain,
  port: CLONE_PORT,
  type: INGRESS_CLONE,
  ingress: 0,
  rid: CLONE_INSTANCE,
  a: 0,
  b: 0,
  c: 0,
  notKept: 0,
  noTimestamp: true,
};
/** A clone at egress already has the report of the packet, which it writes anew. */
const egressClone = { ...ingressClone, type: EGRESS_CLONE, length: LENGTH + 9 };

describe('clones at ingress', () => {
  test('go before the packet, with no metadata but the list, ingress_port and time stamp zero', () => {
    expect(send(0)).toEqual([plain]);
    expect(send(1)).toEqual([ingressClone, plain]);
  });

  test('are the packet as it came in, and keep the fields of the list as ingress left them', () => {
    expect(send(2)).toEqual([
      { ...ingressClone, a: 0xaa, b: 1 },
      { ...plain, value: 0xee, a: 0xaa },
    ]);
  });

  test('are parsed again with the ingress port, which is zero only afterwards', () => {
    const [clone, packet] = send(1, PORT_WITH_EXTRA);
    expect(clone).toEqual({ ...ingressClone, extra: true, rest: PAYLOAD.slice(1) });
    expect(packet).toEqual({ ...plain, ingress: PORT_WITH_EXTRA, extra: true, rest: PAYLOAD.slice(1) });
  });

  test('survive the drop of their packet', () => {
    expect(send(14)).toEqual([{ ...ingressClone, b: 1, c: 0x77 }]);
    expect(device.device.statistics.dropped).toBe(1);
  });

  test('are nothing when the session is unknown', () => {
    expect(send(15)).toEqual([plain]);
    device.control.deleteCloneSession(5);
    expect(send(1)).toEqual([plain]);
  });

  test('are one, by the last call', () => {
    expect(send(16)).toEqual([{ ...ingressClone, b: 1, c: 0x77 }, plain]);
  });

  test('go before multicast copies', () => {
    expect(send(27).map(({ port, type }) => [port, type])).toEqual([
      [CLONE_PORT, INGRESS_CLONE],
      [1, REPLICATED],
      [6, REPLICATED],
    ]);
  });

  test('are made of a recirculated packet as it entered ingress, parsed with the port it once came by', () => {
    const [clone, packet] = send(33);
    // Both stand behind the first pass's report; the packet that recirculated has no ingress port, the clone's parser had.
    expect(clone).toMatchObject({ port: CLONE_PORT, type: INGRESS_CLONE, a: 10, b: 2, length: LENGTH + 9 });
    expect(packet).toMatchObject({ port: 2, type: NORMAL, ingress: 0, a: 10, b: 2, extra: false });
    const [parsedWithPort, parsedWithout] = send(33, PORT_WITH_EXTRA);
    expect([parsedWithPort!.extra, parsedWithout!.extra]).toEqual([true, false]);
  });

  test('go to every replica of the session, each with its instance, cut to its length', () => {
    device.control.setCloneSession(
      5,
      [
        { port: 3, instance: 1 },
        { port: 3, instance: 2 },
        { port: 8, instance: 1 },
      ],
      15,
    );
    const sent = send(1);
    expect(sent.map(({ port, rid }) => [port, rid])).toEqual([
      [3, 1],
      [3, 2],
      [8, 1],
      [2, 0],
    ]);
    expect(sent.map(({ rest }) => rest.length)).toEqual([4, 4, 4, PAYLOAD.length]);
  });

  test('follow the state of ports where a replica has backups', () => {
    const backups = [{ port: 7, instance: 9 }];
    device.control.setCloneSession(5, [{ port: 3, instance: 1, backups }], 0);
    const ports = () => send(1).map(({ port, rid }) => [port, rid]);
    device.device.setPortUp(3, false);
    expect(ports()).toEqual([
      [7, 9],
      [2, 0],
    ]);
    device.device.setPortUp(7, false);
    expect(ports()).toEqual([[2, 0]]);
    device.device.setPortUp(3, true);
    expect(ports()).toEqual([
      [3, 1],
      [2, 0],
    ]);
  });
});

describe('clones at egress', () => {
  test('go after the packet, with the headers as egress left them', () => {
    expect(send(5)).toEqual([
      { ...plain, value: 0xee },
      { ...egressClone, value: 0xee },
    ]);
  });

  test('are made before the drop, and keep the list as egress left it', () => {
    expect(send(6)).toEqual([{ ...egressClone, a: 0xaa, b: 1 }]);
    expect(device.device.statistics).toMatchObject({ dropped: 1, transmitted: 1 });
  });

  test('are not truncated with their packet', () => {
    const [packet, clone] = send(24);
    expect(packet!.rest.length).toBe(17 - 11);
    expect(clone).toEqual(egressClone);
  });
});

describe('resubmitted packets', () => {
  test('are the original packet with instance type 6 and no metadata', () => {
    // Unicast makes the type normal again.
    expect(send(3)).toEqual([{ ...plain, ingress: 0, noTimestamp: true }]);
  });

  test('win over multicast, and keep the list', () => {
    expect(send(4)).toEqual([{ ...plain, ingress: 0, noTimestamp: true, a: 10, b: 2 }]);
  });

  test('are cloned and learned from first', () => {
    expect(send(20)).toEqual([
      { ...ingressClone, a: 5, b: 1 },
      { ...ingressClone, a: 10, b: 2 },
      { ...plain, ingress: 0, noTimestamp: true, a: 10, b: 2 },
    ]);
    expect(send(32).length).toBe(1);
    expect(digests).toEqual(['other_t 32']);
  });
});

describe('recirculated packets', () => {
  const firstReport = [NORMAL, 9, 0, 0, LENGTH, 5, 1, 0x77, 1];

  test('are what the deparser made, without metadata, and of normal type after unicast', () => {
    expect(send(7)).toEqual([
      { ...plain, ingress: 0, noTimestamp: true, length: LENGTH + 9, rest: [...firstReport, ...PAYLOAD] },
    ]);
  });

  test('keep the list as egress left it, and are not truncated', () => {
    expect(send(8)).toEqual([
      {
        ...plain,
        ingress: 0,
        noTimestamp: true,
        length: LENGTH + 9,
        a: 0x35,
        b: 2,
        rest: [...firstReport, ...PAYLOAD],
      },
    ]);
  });

  test('are not recirculated when they are dropped', () => {
    expect(send(25)).toEqual([]);
  });
});

describe('drop, multicast and unicast', () => {
  test('a group that is set after mark_to_drop wins; mark_to_drop clears one that is set before', () => {
    expect(send(9).map(({ port, type, rid }) => [port, type, rid])).toEqual([
      [1, REPLICATED, 11],
      [6, REPLICATED, 12],
    ]);
    expect(send(10)).toEqual([]);
  });

  test('a truncation holds for unicast, the shortest counts, and is lost by multicast', () => {
    expect(send(12)[0]!.rest.length).toBe(16 - 11);
    expect(send(13)[0]!.rest.length).toBe(15 - 11);
    expect(send(11).map(({ rest }) => rest)).toEqual([PAYLOAD, PAYLOAD]);
    expect(device.run(9, [26, 5, ...PAYLOAD])).toEqual([{ port: 2, bytes: [] }]);
  });

  test('a priority that no queue has drops', () => {
    expect(send(17, 9, 0).length).toBe(1);
    expect(send(17, 9, 1)).toEqual([]);
    const two = new TestDevice(readFileSync(PROGRAM), { priorityQueues: 2 });
    expect(two.run(9, [17, 1, ...PAYLOAD]).length).toBe(1);
    expect(two.run(9, [17, 2, ...PAYLOAD])).toEqual([]);
  });

  test('the type of a unicast packet is normal whatever the program wrote; exit does not reach egress', () => {
    expect(send(22)).toEqual([plain]);
    expect(send(23)).toEqual([{ ...plain, port: 0 }]);
  });

  test('another drop port can be chosen', () => {
    const other = new TestDevice(readFileSync(PROGRAM), { dropPort: 2 });
    expect(other.run(9, [0, 5, ...PAYLOAD])).toEqual([]);
    expect(other.run(9, [10, 5, ...PAYLOAD])).toEqual([]);
    expect(other.run(9, [23, 5, ...PAYLOAD]).map(({ port }) => port)).toEqual([0]);
    expect(other.device.statistics.dropped).toBe(2);
  });
});

describe('digests', () => {
  test('carry the values of the fields', () => {
    send(30);
    expect(digests).toEqual([`learned_t 5,${0x12345677},9`]);
    const learned = device.control.digests.get('learned_t')!;
    expect(learned.fields.map(({ widthBits }) => widthBits)).toEqual([8, 40, 9]);
  });

  test('are one per packet, by the last call, also of a packet that is dropped', () => {
    expect(send(31)).toEqual([]);
    expect(digests).toEqual(['other_t 31']);
  });
});

describe('what a program asserts', () => {
  test('loses the packet when it does not hold, and is counted', () => {
    expect(send(34, 9, 0).length).toBe(1);
    expect(send(34, 9, 1)).toEqual([]);
    expect(send(34, 9, 2)).toEqual([]);
    expect(device.device.statistics).toMatchObject({ received: 3, transmitted: 1, errors: 2, failedAssertions: 2 });
  });
});
