import { describe, expect, it } from 'vitest';
import { parseSwitchOptions, type RawSwitchOptions } from '../../scripts/switch-options.ts';

const good: RawSwitchOptions = { program: 'fabric.json', interface: ['1@veth1', '2@veth3'] };
const problem = (raw: RawSwitchOptions): string => {
  try {
    parseSwitchOptions(raw);
  } catch (error) {
    return (error as Error).message;
  }
  return 'accepted';
};

describe('options of ddf switch', () => {
  it('have defaults', () => {
    expect(parseSwitchOptions(good)).toEqual({
      programFile: 'fabric.json',
      p4infoFile: undefined,
      ports: [
        { port: 1, interfaceName: 'veth1' },
        { port: 2, interfaceName: 'veth3' },
      ],
      deviceId: 1n,
      grpcAddress: '127.0.0.1:9559',
      cpuPort: 510,
      dropPort: 511,
      priorityQueues: 1,
      pcapDirectory: undefined,
      seed: 1,
      logLevel: 'warn',
      json: false,
    });
    expect(parseSwitchOptions({ ...good, pcap: true, logLevel: 'off' })).toMatchObject({
      pcapDirectory: '.',
      logLevel: 'silent',
    });
  });

  it('impair all ports, or one', () => {
    const { ports } = parseSwitchOptions({
      ...good,
      loss: ['1', '2=2.5'],
      reordering: ['1=10'],
      reorderDelay: ['500'],
    });
    expect(ports.map(({ impairments }) => impairments)).toMatchObject([
      { loss: 0.01, reordering: 0.1, reorderDelayUs: 500, duplication: 0, corruption: 0 },
      { loss: 0.025, reordering: 0 },
    ]);
  });

  it.each<[RawSwitchOptions, RegExp]>([
    [{}, /no program/],
    [{ ...good, p4: false }, /--no-p4 contradicts/],
    [{ ...good, interface: ['veth1'] }, /not PORT@INTERFACE/],
    [{ ...good, interface: ['1@'] }, /no name of a network interface/],
    [{ ...good, interface: ['1@interface-of-16b'] }, /1 to 15 bytes/],
    [{ ...good, interface: ['1@a/b'] }, /no name of a network interface/],
    [{ ...good, interface: ['511@veth1'] }, /packets to port 511 are dropped/],
    [{ ...good, interface: ['512@veth1'] }, /ports are 0 to 511/],
    [{ ...good, dropPort: '1' }, /packets to port 1 are dropped/],
    [{ ...good, priorityQueues: '9' }, /--priority-queues 9/],
    [{ ...good, interface: ['510@veth1'] }, /is the CPU port/],
    [{ ...good, interface: ['1@a', '1@b'] }, /port 1 is a already/],
    [{ ...good, interface: ['1@a', '2@a'] }, /a is port 1 already/],
    [{ ...good, cpuPort: '0' }, /--cpu-port 0/],
    [{ ...good, cpuPort: '511' }, /--cpu-port 511/],
    [{ ...good, deviceId: '-1' }, /--device-id -1/],
    [{ ...good, grpc: '127.0.0.1' }, /not HOST:PORT/],
    [{ ...good, loss: ['101'] }, /per cent from 0 to 100/],
    [{ ...good, loss: ['3=1'] }, /no interface is port 3/],
    [{ ...good, reorderDelay: ['0'] }, /--reorder-delay 0/],
    [{ ...good, logLevel: 'loud' }, /--log-level loud/],
  ])('are refused: %j', (raw, expected) => {
    expect(problem(raw)).toMatch(expected);
  });
});
