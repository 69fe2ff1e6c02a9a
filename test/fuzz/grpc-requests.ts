import { credentials, type MethodDefinition, makeGenericClientConstructor, type ServiceError } from '@grpc/grpc-js';
import { RealScheduler } from '../../base/clock.ts';
import { createLogger } from '../../base/logger.ts';
import { createRandom, type Random } from '../../base/random.ts';
import { startP4RuntimeServer } from '../../switch/server/p4runtime-server.ts';
import { SetForwardingPipelineConfigRequestAction as ConfigAction } from '../../wire/p4runtime/messages.ts';
import { messagePlan, serviceDefinition } from '../../wire/proto.ts';
import { WatchedDevice } from './device.ts';
import { mutateBytes } from './mutate.ts';
import { mutateMessage } from './mutate-message.ts';
import { readCodec, requestPrograms, setCodec, streamCodec, writeCodec } from './requests.ts';
import { ensure, type FuzzTarget, pick, Tally } from './target.ts';

/** A client that sends bytes as they are. */
const METHODS = serviceDefinition('p4.v1.P4Runtime');
const RawClient = makeGenericClientConstructor(
  Object.fromEntries(
    Object.entries(METHODS).map(([name, method]) => [
      name,
      {
        ...method,
        requestSerialize: (bytes: Buffer) => bytes,
        responseDeserialize: (bytes: Buffer) => bytes,
      } as unknown as MethodDefinition<Buffer, Buffer>,
    ]),
  ),
  'P4Runtime',
);
const DEADLINE_MS = 20_000;
const INTERNAL = 13;
const DEADLINE_EXCEEDED = 4;

/** Damaged bytes over a real connection: every call gets a status, and the server answers a good request afterwards. */
export async function requestsOverGrpc(): Promise<FuzzTarget> {
  const [program] = requestPrograms();
  const tally = new Tally();
  const watched = new WatchedDevice(createRandom('device'));
  const scheduler = new RealScheduler();
  const server = await startP4RuntimeServer({
    devices: [watched.device],
    address: '127.0.0.1:0',
    scheduler,
    logger: createLogger('silent'),
  });
  const client = new RawClient(`127.0.0.1:${server.port}`, credentials.createInsecure());
  const unary = (method: string, bytes: Uint8Array): Promise<number> =>
    new Promise((resolve) => {
      client[method]!(Buffer.from(bytes), { deadline: Date.now() + DEADLINE_MS }, (error: ServiceError | null) =>
        resolve(error?.code ?? 0),
      );
    });
  const streamed = (method: string, bytes: Uint8Array): Promise<number> =>
    new Promise((resolve) => {
      const options = { deadline: Date.now() + DEADLINE_MS };
      const call = method === 'Read' ? client.Read!(Buffer.from(bytes), options) : client.StreamChannel!(options);
      call.on('data', () => undefined);
      call.on('error', (error: ServiceError) => resolve(error.code));
      call.on('end', () => resolve(0));
      if (method === 'Read') return;
      call.write(Buffer.from(bytes));
      call.end();
    });

  const header = { deviceId: 1n, electionId: { high: 0n, low: 1n } };
  const { samples, config } = program!;
  const arbitration = (low: bigint): Uint8Array =>
    streamCodec.encode({ arbitration: { deviceId: 1n, electionId: { high: 0n, low } } });
  const primary = client.StreamChannel!();
  primary.on('error', () => undefined);
  await new Promise((resolve) => {
    primary.on('data', resolve);
    primary.write(Buffer.from(arbitration(1n)));
  });
  const set = setCodec.create({ ...header, action: ConfigAction.VERIFY_AND_COMMIT, config });
  const ready = await unary('SetForwardingPipelineConfig', setCodec.encode(set));
  ensure(ready === 0, () => `the undamaged program is refused with status ${ready}`);
  const request = (random: Random): [string, Uint8Array] => {
    const updates = Array.from({ length: 1 + random.below(5) }, () => samples.update(random));
    const entities = updates.flatMap(({ entity }) => entity ?? []);
    const [method, codec, message] = pick<readonly [string, typeof writeCodec, object]>(random, [
      ['Write', writeCodec, writeCodec.create({ ...header, updates })],
      ['Read', readCodec as never, readCodec.create({ deviceId: 1n, entities })],
      ['StreamChannel', streamCodec as never, streamCodec.decode(arbitration(BigInt(random.below(3))))],
      [
        'SetForwardingPipelineConfig',
        setCodec as never,
        setCodec.create({ ...header, action: ConfigAction.VERIFY, config: random.chance(0.9) ? undefined : config }),
      ],
    ]);
    const damaged = random.chance(0.5)
      ? mutateMessage(random, messagePlan(codec.fullName), message, samples.ids)
      : message;
    const bytes = codec.encode(damaged as never);
    return [method, random.chance(0.4) ? mutateBytes(random, bytes) : bytes];
  };

  return {
    casesPerRound: 200,
    tally,
    round: async (random, cases, step) => {
      for (let i = 0; i < cases; i++) {
        const [method, bytes] = request(random);
        step(() => `${method} ${Buffer.from(bytes.subarray(0, 4000)).toString('hex')}`);
        const code = await (method === 'Read' || method === 'StreamChannel'
          ? streamed(method, bytes)
          : unary(method, bytes));
        tally.add(`status ${code}`);
        ensure(code !== DEADLINE_EXCEEDED, () => 'the call got no status in time');
        // grpc-js answers INTERNAL to bytes that are no message of the type.
        if (code === INTERNAL) tally.add('undecodable');
      }
      ensure((await unary('Capabilities', new Uint8Array(0))) === 0, () => 'the server answers no more');
    },
    close: async () => {
      primary.cancel();
      client.close();
      await server.stop();
      scheduler.stop();
    },
  };
}
