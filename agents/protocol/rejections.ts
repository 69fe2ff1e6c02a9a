import type { FabricFault } from '../../wire/fabric/header.ts';

/**
 * The first check that a datagram did not pass: its length, or that of its payload; version; a type that does not exist or is not for this side;
 * symbol or number of source symbols; CRC; another transfer's label; another object, version or base; a block that the stream does not have.
 */
export type Rejection = 'length' | 'version' | 'type' | 'symbol' | 'crc' | 'label' | 'object' | 'block';

/** Datagrams that were neither understood nor meant for this transfer. Counters of ../../wire/agent/schema.ts as plain numbers. */
export interface RejectionCounters {
  /** The sum of the others. */
  packetsRejected: number;
  rejectedLength: number;
  rejectedVersion: number;
  rejectedType: number;
  rejectedSymbol: number;
  rejectedCrc: number;
  rejectedLabel: number;
  rejectedObject: number;
  rejectedBlock: number;
}

const COUNTERS = {
  length: 'rejectedLength',
  version: 'rejectedVersion',
  type: 'rejectedType',
  symbol: 'rejectedSymbol',
  crc: 'rejectedCrc',
  label: 'rejectedLabel',
  object: 'rejectedObject',
  block: 'rejectedBlock',
} as const satisfies Record<Rejection, keyof RejectionCounters>;

const FAULTS: Record<FabricFault, Rejection> = {
  'too short': 'length',
  version: 'version',
  type: 'type',
  'payload length': 'length',
  'source symbols': 'symbol',
  symbol: 'symbol',
  crc: 'crc',
};

export function noRejections(): RejectionCounters {
  return {
    packetsRejected: 0,
    rejectedLength: 0,
    rejectedVersion: 0,
    rejectedType: 0,
    rejectedSymbol: 0,
    rejectedCrc: 0,
    rejectedLabel: 0,
    rejectedObject: 0,
    rejectedBlock: 0,
  };
}

export function countRejection(counters: RejectionCounters, why: Rejection | FabricFault): void {
  counters.packetsRejected++;
  counters[COUNTERS[why in FAULTS ? FAULTS[why as FabricFault] : (why as Rejection)]]++;
}

/** What two parts of one sender have counted. */
export function sumOfRejections(a: RejectionCounters, b: RejectionCounters): RejectionCounters {
  const sum = noRejections();
  for (const name of Object.keys(sum) as (keyof RejectionCounters)[]) sum[name] = a[name] + b[name];
  return sum;
}

/** The counters as a status message has them. */
export function rejectionFields(counters: RejectionCounters): Record<keyof RejectionCounters, bigint> {
  return {
    packetsRejected: BigInt(counters.packetsRejected),
    rejectedLength: BigInt(counters.rejectedLength),
    rejectedVersion: BigInt(counters.rejectedVersion),
    rejectedType: BigInt(counters.rejectedType),
    rejectedSymbol: BigInt(counters.rejectedSymbol),
    rejectedCrc: BigInt(counters.rejectedCrc),
    rejectedLabel: BigInt(counters.rejectedLabel),
    rejectedObject: BigInt(counters.rejectedObject),
    rejectedBlock: BigInt(counters.rejectedBlock),
  };
}
