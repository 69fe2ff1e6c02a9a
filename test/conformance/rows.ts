export type Side = 'server' | 'client';

/**
 * The behaviours of P4Runtime 1.5 that can be checked, by number. `server` rows are held against a P4Runtime server, `client` rows against the
 * controller's connection; a row of both has a check on either side.
 */
export interface Row {
  readonly number: number;
  readonly sides: readonly Side[];
  readonly text: string;
}

const SERVER = ['server'] as const;
const CLIENT = ['client'] as const;
const BOTH = ['server', 'client'] as const;

const TEXTS: readonly (readonly [number, Row['sides'], string])[] = [
  // Arbitration
  [1, SERVER, 'a first update for an unknown device ends the stream with NOT_FOUND'],
  [
    2,
    SERVER,
    'an election id of another live stream of the role ends the stream with INVALID_ARGUMENT; the holder stays',
  ],
  [3, SERVER, 'a role config that cannot be accepted ends the stream with INVALID_ARGUMENT'],
  [4, SERVER, 'too many streams end with RESOURCE_EXHAUSTED'],
  [5, SERVER, 'a later update with another device or role ends the stream with FAILED_PRECONDITION'],
  [6, SERVER, 'only the highest id ever seen is primary, and nobody is promoted when the primary leaves'],
  [7, SERVER, 'the primary is told OK, backups ALREADY_EXISTS; no election id before the first primary'],
  [8, SERVER, 'streams without an id are backups for ever, any number of them; the id 0 is an id'],
  [9, SERVER, 'a primary that bids lower steps back, and all are told'],
  [10, SERVER, 'a primary that bids the same id stays, its role config is renewed, and all are told'],
  [11, SERVER, 'after a hand-over the old primary writes no more, the new one does'],
  [12, SERVER, 'the highest id outlives all streams, per device and role'],
  [13, SERVER, 'a bad update is never reported as a stream error'],
  [14, CLIENT, 'stays backup while there is a primary, bids again when there is none'],
  [15, CLIENT, 'takes another id and backs off when its own is used; writes fail fast when the stream ends'],
  [16, CLIENT, 'election ids are 128 bits, compared unsigned'],
  [17, CLIENT, 'acts as primary only after OK on the current stream'],
  // The order of checks
  [18, SERVER, 'unknown device or role, then not primary, then no pipeline'],
  [19, SERVER, 'reads need a known device and a pipeline, neither stream nor election id; roles filter them'],
  [20, SERVER, 'an entity that is not set is INVALID_ARGUMENT'],
  [21, SERVER, 'a read with bad members delivers the good ones, then says which were bad'],
  [22, SERVER, 'before any Set, Get answers OK without a config'],
  [23, SERVER, 'what SetForwardingPipelineConfig does by action, with and without a config'],
  [24, SERVER, 'the cookie comes back, and response types choose the parts'],
  [25, BOTH, 'Capabilities gives the full version; a server without it is taken for 1.0'],
  // Batches
  [26, SERVER, 'one error for each update in their order; failures of the whole request have no details'],
  [27, SERVER, 'CONTINUE_ON_ERROR, ROLLBACK_ON_ERROR and DATAPLANE_ATOMIC do what they say or are UNIMPLEMENTED'],
  [28, SERVER, 'the codes of failed updates'],
  [29, SERVER, 'deletes look at the key only'],
  [30, CLIENT, 'what depends on each other goes in separate writes'],
  [31, CLIENT, 'details that are missing or do not fit the batch make its outcome unknown'],
  [32, BOTH, 'messages above 4 MB pass'],
  // Byte strings
  [33, SERVER, 'values may come with leading zeros; empty strings and values that do not fit are refused'],
  [34, SERVER, 'replies have the shortest strings'],
  [35, SERVER, "signed values are in two's complement, without needless sign bytes"],
  [36, CLIENT, 'what is sent is canonical, what comes is compared after making it so'],
  // Table entries
  [37, SERVER, 'fields that match everything must be left out'],
  [38, SERVER, 'prefixes, masks and ranges are well formed, exact fields present, field ids known and single'],
  [39, SERVER, 'exactly the tables with ternary, range or optional keys have priorities; the higher number wins'],
  [40, SERVER, 'no inserts into keyless tables, no is_const in writes'],
  [41, SERVER, "the default entry is only modified, has no key, and goes back to the program's own"],
  [42, SERVER, 'actions of the table, in their scope, with exactly their parameters'],
  [43, SERVER, 'which member of the action oneof an entry has goes by its table'],
  [44, SERVER, 'a const table changes in its direct resources and default action only'],
  [45, SERVER, 'of entries that the program begins with only the const ones are fixed'],
  [46, SERVER, 'configuring a direct resource that the table or action does not have is INVALID_ARGUMENT'],
  [47, SERVER, 'wildcard reads and their filters'],
  [48, CLIENT, 'what a read without match gives is filtered again'],
  [49, SERVER, 'counters, meters and hit times are read only if asked for'],
  [50, SERVER, 'a modify without meter config resets the meter, one without counter data keeps the counter'],
  [51, SERVER, 'no hit time in writes, no idle time-out where there is none, and its value comes back exactly'],
  [52, SERVER, 'metadata and controller metadata come back'],
  // Idle time-outs
  [
    53,
    SERVER,
    'idle notices name their entries in full, go to the primary only, and come again after another time-out',
  ],
  [54, CLIENT, 'an idle notice is a hint: its entry may be gone'],
  // Action profiles
  [55, SERVER, 'members and groups exist once, and are not deleted while used'],
  [56, SERVER, 'groups hold known members, within their size, with weights of at least 1'],
  [57, SERVER, 'one-shot sets come back as they were written, and do not mix with members and groups'],
  [58, SERVER, 'selection modes and size semantics that are not served are UNIMPLEMENTED'],
  // Counters, meters, registers, value sets
  [59, SERVER, 'no inserts and deletes of cells; a negative index is INVALID_ARGUMENT, one too high OUT_OF_RANGE'],
  [60, SERVER, 'id 0 is all arrays, no index all cells, in reads; in writes no index sets all cells'],
  [61, SERVER, 'direct resources go by their entry, the default entry included'],
  [62, SERVER, "meter configs are those of the meter's type; without one a meter is always green"],
  [63, SERVER, 'register data is of the type of the cells'],
  [64, SERVER, 'value sets are only modified, hold distinct members, and no more than their size'],
  // Replication
  [65, SERVER, 'multicast groups begin at 1; instances begin at 0 and end at their width'],
  [66, SERVER, 'pairs of port and instance are unique, no port is its own backup'],
  [67, SERVER, 'backup replicas work or are UNIMPLEMENTED; order and metadata come back'],
  [68, SERVER, 'the deprecated egress_port is echoed as such, port strings are canonical'],
  [
    69,
    SERVER,
    'packets: an unknown group drops, a group replaces the unicast port, copies have their port and instance',
  ],
  [70, SERVER, 'clone sessions begin at 1, cut packets, and have a known class of service'],
  [71, SERVER, 'reads of groups and sessions consider the id only, 0 is all'],
  // Digests
  [72, SERVER, 'digests are on from insert to delete; lists hold distinct messages, for so long or so many'],
  [73, SERVER, 'messages not acknowledged are not repeated until the ack time-out; the limits 0 and 1'],
  [74, CLIENT, 'every digest list is acknowledged after it was acted upon'],
  // The stream
  [75, SERVER, 'a packet-out with another set of metadata is not sent'],
  [76, SERVER, "a packet-out that is not the primary's is not sent"],
  [77, SERVER, 'an ack of a digest that does not exist is a stream error'],
  [78, SERVER, 'packet-ins go to primaries, as their roles want them, once there is a pipeline'],
  [79, CLIENT, 'packet metadata goes by id and width'],
  [80, CLIENT, 'a slow consumer of packets does not hold up arbitration'],
  // The rest
  [81, SERVER, 'the top byte of an id says what it names; a P4Info in which it does not is refused'],
  [82, SERVER, 'SDN port numbers: 0 is none, the CPU port has a number of its own'],
  [83, SERVER, 'translated values: what cannot be translated is an error of its update; strings are kept as they are'],
  [84, SERVER, 'a write or read of one entity is atomic for packets'],
];

export const ROWS: readonly Row[] = TEXTS.map(([number, sides, text]) => ({ number, sides, text }));

export function rowsOf(side: Side): readonly Row[] {
  return ROWS.filter(({ sides }) => sides.includes(side));
}

/** The name of a row's test: what `npm run conformance` finds it by. */
export function titleOf({ number, text }: Row): string {
  return `row ${number}: ${text}`;
}

/** Checks by row number. A check fails by throwing; vitest's `expect` is at hand. */
export type Checks<Context> = Readonly<Record<number, (context: Context) => Promise<void>>>;

/** The check of every row of a side. Throws when a row has none or two, or a check is for a row that is not of this side. */
export function checksByRow<Context>(
  side: Side,
  parts: readonly Checks<Context>[],
): Map<Row, (context: Context) => Promise<void>> {
  const checks = new Map<number, (context: Context) => Promise<void>>();
  for (const part of parts)
    for (const [number, check] of Object.entries(part)) {
      if (checks.has(Number(number))) throw new Error(`Row ${number} has two ${side} checks`);
      checks.set(Number(number), check);
    }
  const byRow = new Map(
    rowsOf(side).map((row) => {
      const check = checks.get(row.number);
      if (check === undefined) throw new Error(`Row ${row.number} has no ${side} check`);
      checks.delete(row.number);
      return [row, check];
    }),
  );
  if (checks.size > 0) throw new Error(`There are no ${side} rows ${[...checks.keys()].join()}`);
  return byRow;
}
