/** JSON schemas of the REST API: what Fastify validates and serialises by, and what /openapi.json shows. */

type Schema = Record<string, unknown>;

const text: Schema = { type: 'string' };
const count: Schema = { type: 'integer', minimum: 0 };
const flag: Schema = { type: 'boolean' };
const nullable = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });
const list = (items: Schema): Schema => ({ type: 'array', items });
const oneOf = (...values: string[]): Schema => ({ type: 'string', enum: values });
const counters: Schema = { type: 'object', additionalProperties: { type: 'number' } };

/** An object of exactly these properties, all of them required but the ones named optional. */
function record(properties: Record<string, Schema>, optional: readonly string[] = [], more: Schema = {}): Schema {
  return {
    type: 'object',
    properties,
    required: Object.keys(properties).filter((name) => !optional.includes(name)),
    additionalProperties: false,
    ...more,
  };
}

const objectName: Schema = {
  type: 'string',
  minLength: 1,
  maxLength: 200,
  pattern: '^[A-Za-z0-9._\\-/]+$',
  description: 'Name of the object, such as models/demo; a slash in a path is written %2F',
};
const versionNumber: Schema = { type: 'integer', minimum: 1, maximum: 0xffffffff };
const agentKind = oneOf('memory-node', 'gpu-server');
const sha256: Schema = { type: 'string', pattern: '^[0-9a-f]{64}$' };

export const problemSchema = record(
  {
    type: { ...text, description: 'urn:ddf:error: followed by the code' },
    title: text,
    status: count,
    code: { ...text, description: 'A stable code from docs/errors.md' },
    detail: text,
    where: text,
    remedy: text,
  },
  ['where', 'remedy'],
);

export const publishBody = record(
  {
    version: versionNumber,
    path: { ...text, minLength: 1, description: 'Absolute path of a file that the Memory Node can read' },
    base: {
      ...versionNumber,
      description:
        'A version that the Memory Node holds: the delta from it is made at once. Where the sizes differ, what the base lacks counts as zeros',
    },
    memoryNode: { ...text, description: 'Default: the attached Memory Node that holds the fewest bytes' },
  },
  ['base', 'memoryNode'],
);

export const rolloutBody = record(
  {
    object: objectName,
    version: versionNumber,
    servers: {
      anyOf: [
        { type: 'string', const: 'all' },
        { type: 'array', items: { type: 'string', minLength: 1 } },
      ],
      description: 'Server names, or "all" for every server of the topology',
    },
    deadlineSeconds: {
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 86400,
      description: 'After this what is missing is read by unicast. Default 120',
    },
    start: record(
      {
        rule: oneOf('all', 'quorum', 'deadline'),
        servers: { type: 'integer', minimum: 1 },
        withinSeconds: { type: 'number', exclusiveMinimum: 0, maximum: 86400 },
      },
      ['servers', 'withinSeconds'],
      {
        description:
          'When senders start: all attached receivers are ready, "servers" of them are, or "withinSeconds" (default 20) have passed',
      },
    ),
    end: record({ rule: oneOf('all', 'quorum', 'deadline'), servers: { type: 'integer', minimum: 1 } }, ['servers'], {
      description:
        'What the rollout wants before it activates: every server has the version, "servers" have, or whoever has at the deadline',
    }),
  },
  ['deadlineSeconds', 'start', 'end'],
);

export const objectParams = record({ name: objectName });
export const rolloutParams = record({ id: { ...text, minLength: 1 } });
export const holdersQuery = record({ version: { type: 'string', pattern: '^[1-9][0-9]{0,9}$' } }, ['version']);
export const eventsQuery = record({ after: { type: 'string', pattern: '^[0-9]{1,12}$' } }, ['after']);

export const objectView = record({ name: text, objectId: text, tenant: count, versions: list(count) });

export const versionView = record({
  object: text,
  objectId: text,
  version: count,
  sizeBytes: count,
  rootSha256: sha256,
  createdAt: text,
  payloads: list(record({ base: nullable(count), sizeBytes: count, memoryNodes: list(text) })),
  holders: count,
});

export const holderView = record({
  agent: text,
  kind: agentKind,
  version: count,
  rootSha256: sha256,
  incarnation: text,
  attached: flag,
  since: text,
});

export const agentView = record({
  name: text,
  kind: agentKind,
  attached: flag,
  ip: text,
  switch: text,
  incarnation: nullable(text),
  held: list(record({ object: text, version: count, rootSha256: sha256 })),
  active: list(record({ object: text, version: count })),
});

export const switchView = record({
  name: text,
  deviceId: count,
  layer: text,
  state: oneOf('connecting', 'primary', 'backup', 'down'),
  p4runtimeVersion: nullable(text),
  entries: count,
  drops: list(record({ reason: text, packets: count })),
});

export const multicastGroupView = record({ group: text, members: list(text), replicated: flag });

export const topologyView = record({
  name: text,
  mtuBytes: count,
  switches: list(record({ name: text, layer: text })),
  hosts: list(record({ name: text, kind: text, switch: text, port: count, ip: text })),
  links: list(record({ a: text, b: text, rateBitsPerSecond: { type: 'number' } })),
});

const estimate = record({
  value: { type: 'number' },
  unit: text,
  source: oneOf('configured', 'measured', 'learned'),
  basis: text,
});

const cohortKind = oneOf('current', 'delta', 'full');

export const planView = record({
  object: text,
  objectId: text,
  version: count,
  targets: count,
  cohorts: list(
    record({
      kind: cohortKind,
      from: nullable(count),
      servers: list(text),
      mechanism: oneOf('none', 'multicast', 'unicast'),
      payload: nullable(record({ base: nullable(count), sizeBytes: count })),
      source: nullable(text),
      stripes: list(
        record({
          source: text,
          switches: list(text),
          coreLinks: list(record({ from: text, to: text })),
          hostLinks: count,
        }),
      ),
      predictedSeconds: nullable(estimate),
      reasons: list(text),
      rejected: list(record({ alternative: text, reason: text, bytes: count })),
    }),
  ),
  bytes: record({
    source: count,
    coreLinks: count,
    hostLinks: count,
    unicastSource: count,
    unicastCoreLinks: count,
  }),
  warnings: list(text),
});

export const transferView = record({
  label: count,
  rollout: text,
  object: text,
  version: count,
  base: nullable(count),
  source: text,
  state: oneOf('installing', 'preparing', 'sending', 'sent', 'closed', 'failed'),
  receivers: count,
  complete: count,
  payloadBytes: count,
  segmentBytes: nullable(count),
  pathSegmentBytes: nullable(count),
  error: nullable(record({ code: text, message: text, where: text, remedy: text })),
  sender: counters,
  receiverTotals: counters,
});

const rolloutState = oneOf('queued', 'planned', 'distributing', 'verifying', 'staged', 'active', 'aborted', 'failed');

export const rolloutView = record({
  id: text,
  object: text,
  version: count,
  state: rolloutState,
  plan: planView,
  servers: list(
    record({
      name: text,
      cohort: cohortKind,
      state: oneOf('waiting', 'receiving', 'reconstructing', 'verified', 'active', 'failed'),
      bytesDone: count,
      bytesTotal: count,
      error: nullable(text),
    }),
  ),
  transfers: list(transferView),
  verified: count,
  phases: list(record({ state: rolloutState, seconds: { type: 'number' } })),
  startedAt: text,
  endedAt: nullable(text),
  error: nullable(text),
});

export const switchParams = record({ name: text });

export const traceBody = record(
  {
    port: { type: 'integer', minimum: 0, maximum: 511 },
    frame: { ...text, pattern: '^([0-9a-fA-F]{2})*$', maxLength: 131_070, description: 'hexadecimal' },
    inject: flag,
    count: { type: 'integer', minimum: 1, maximum: 1000 },
    seconds: { type: 'number', exclusiveMinimum: 0, maximum: 60 },
  },
  ['port', 'frame', 'inject', 'count', 'seconds'],
);

export const traceView = record({
  port: count,
  atUs: count,
  events: list({ type: 'object', additionalProperties: true }),
  text,
});

export const listOf = (items: Schema): Schema => record({ items: list(items) });

export const statusView = record({ status: text, reasons: list(text) });
