import pino from 'pino';
import { VirtualScheduler } from '../../../base/clock.ts';
import { createRandom } from '../../../base/random.ts';
import { Device } from '../../../switch/device.ts';
import { type P4RuntimeServer, startP4RuntimeServer } from '../../../switch/server/p4runtime-server.ts';
import { RpcCode } from '../../../switch/server/rpc-error.ts';
import type {
  ForwardingPipelineConfig,
  MasterArbitrationUpdate,
  StreamMessageResponse,
} from '../../../wire/p4runtime/messages.ts';
import { SetForwardingPipelineConfigRequestAction as ConfigAction } from '../../../wire/p4runtime/messages.ts';
import type { MessageInput } from '../../../wire/proto.ts';
import { TestClient, type TestStream } from '../../switch/server/client.ts';
import { startForeign } from './foreign-process.ts';
import { CONFIG, CPU_PORT, packetOut, type Received, type Request, received } from './program.ts';

export const { ABORTED, ALREADY_EXISTS, FAILED_PRECONDITION, INVALID_ARGUMENT, NOT_FOUND, OK } = RpcCode;
export const { OUT_OF_RANGE, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNKNOWN } = RpcCode;

/** What a server answers before it has a pipeline. */
export interface BeforePipeline {
  readonly get: { readonly code: number; readonly config: ForwardingPipelineConfig | undefined };
  readonly readCode: number;
  /** Of the primary's write. */
  readonly writeCode: number;
  /** Of a write that names no device, and of one that is not the primary's. */
  readonly strangerWriteCode: number;
  readonly backupWriteCode: number;
  /** What the primary got for a packet-out. */
  readonly stream: readonly StreamMessageResponse[];
}

/** What a server row's check works with. */
export interface ServerContext {
  readonly client: TestClient;
  readonly deviceId: bigint;
  /** A server that others made: what it holds from earlier rows stays, and its time is the wall's. */
  readonly isForeign: boolean;
  /** Another channel to the same server. */
  newClient(): TestClient;
  /** Election ids of this row: above those of earlier ones, in the order of `n`. */
  id(n: number): bigint;
  /** A role that no earlier row has used. */
  roleName(name: string): string;
  beforePipeline(): Promise<BeforePipeline>;
  /** A stream that is primary (with `id(100)`), and a pipeline without state. */
  start(config?: MessageInput<ForwardingPipelineConfig>): Promise<TestStream>;
  /** Lets the switch's time go on. */
  pass(timeUs: number): Promise<void>;
  /** Sends a packet through the program and waits for `count` packets that come back. */
  exchange(primary: TestStream, payload: Uint8Array, request?: Request, count?: number): Promise<Received[]>;
  /** Waits until what the server has sent by now has come; the stream bids with the id that it has. */
  settle(
    stream: TestStream,
    electionId: bigint | undefined,
    more?: MessageInput<MasterArbitrationUpdate>,
  ): Promise<void>;
  /** Another device of the same server, if it has one. */
  readonly otherDeviceId: bigint | undefined;
  close(): Promise<void>;
}

/** The server that `npm run conformance -- --target` names, and the command that starts it afresh for each row, if there is one. */
const FOREIGN = process.env.DDF_CONFORMANCE_TARGET;
const COMMAND = process.env.DDF_CONFORMANCE_COMMAND;
const FOREIGN_DEVICE_ID = BigInt(process.env.DDF_CONFORMANCE_DEVICE_ID ?? '1');

/** What foreign servers have to send comes within so much time. */
const SETTLE_MS = 400;

export const IS_FOREIGN = FOREIGN !== undefined;
const run = BigInt(Date.now());
let rows = 0n;
/** Of a foreign server that is never started afresh: what it was like before any row. */
let foreignBeforePipeline: BeforePipeline | undefined;

/** Streams that the embedded switch takes in a test, so that "too many" are soon there. */
export const MAX_STREAMS = 8;

/** A fresh embedded switch, or one more row on the foreign server. */
export async function openContext(): Promise<ServerContext> {
  const base = (run << 64n) + rows++ * 1000n;
  const clients: TestClient[] = [];
  const scheduler = new VirtualScheduler();
  let server: P4RuntimeServer | undefined;
  let address = FOREIGN;
  const deviceId = FOREIGN === undefined ? 1n : FOREIGN_DEVICE_ID;
  if (address === undefined) {
    const device = (id: bigint): Device =>
      new Device({ deviceId: id, cpuPort: CPU_PORT, clock: scheduler, random: createRandom('conformance') });
    server = await startP4RuntimeServer({
      devices: [device(1n), device(2n)],
      address: '127.0.0.1:0',
      scheduler,
      logger: pino({ level: 'silent' }),
      maxStreams: MAX_STREAMS,
    });
    address = `127.0.0.1:${server.port}`;
  }
  const target = address;
  const id = (n: number): bigint => base + BigInt(n);
  const newClient = (): TestClient => {
    const client = new TestClient(target, deviceId, id(100));
    clients.push(client);
    return client;
  };
  const client = newClient();
  const started = FOREIGN === undefined || COMMAND === undefined ? undefined : await startForeign(COMMAND, FOREIGN);
  const close = async (): Promise<void> => {
    for (const each of clients) each.close();
    await server?.stop();
    await started?.stop();
  };
  if (FOREIGN !== undefined && COMMAND === undefined) foreignBeforePipeline ??= await observe(newClient(), id(1));
  return {
    client,
    deviceId,
    isForeign: FOREIGN !== undefined,
    otherDeviceId: FOREIGN === undefined ? 2n : undefined,
    newClient,
    id,
    roleName: (name) => `${name}-${base}`,
    beforePipeline: async () => {
      const seen = foreignBeforePipeline ?? (await observe(newClient(), id(1)));
      if (seen.get.config?.p4info !== undefined) throw new Error('the server had a pipeline when the run began');
      return seen;
    },
    start: async (config = CONFIG) => {
      const primary = await client.contend(id(100));
      const outcome = await client.set(ConfigAction.VERIFY_AND_COMMIT, config);
      if (outcome.code !== OK) throw new Error(`The pipeline was refused: ${outcome.code} ${outcome.message}`);
      return primary;
    },
    pass: async (timeUs) => {
      if (FOREIGN === undefined) scheduler.runUntil(scheduler.nowUs() + timeUs);
      else await new Promise((resolve) => setTimeout(resolve, timeUs / 1000));
    },
    exchange: async (primary, payload, request = {}, count = 1) => {
      primary.send(packetOut(payload, request));
      const packets: Received[] = [];
      while (packets.length < count) packets.push(received(await primary.nextOf('packet')));
      return packets;
    },
    settle,
    close,
  };
}

/** Some servers do not answer a bid that changes nothing (row 10), so that all one can do is to wait. */
async function settle(
  stream: TestStream,
  electionId: bigint | undefined,
  more: MessageInput<MasterArbitrationUpdate> = {},
): Promise<void> {
  if (FOREIGN === undefined) await stream.settle(electionId, more);
  else await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
}

async function observe(client: TestClient, electionId: bigint): Promise<BeforePipeline> {
  const get = await client.get();
  const primary = await client.contend(electionId);
  const strangerWriteCode = (await client.write([], { deviceId: 9999n })).code;
  client.electionId = electionId + 1n;
  const backupWriteCode = (await client.write([])).code;
  client.electionId = electionId;
  const writeCode = (await client.write([{ type: 1, entity: { tableEntry: {} } }])).code;
  const readCode = (await client.read([{ tableEntry: {} }])).code;
  primary.send(packetOut(new Uint8Array(60)));
  await settle(primary, electionId);
  const stream = [...primary.pending];
  await primary.close();
  return { get, readCode, writeCode, strangerWriteCode, backupWriteCode, stream };
}
