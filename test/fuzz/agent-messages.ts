import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials, type MethodDefinition, makeGenericClientConstructor } from '@grpc/grpc-js';
import type { Agent } from '../../agents/agent.ts';
import { createGpuServer } from '../../agents/gpu-server.ts';
import { createWorkers } from '../../agents/io/workers.ts';
import { createMemoryNode } from '../../agents/memory-node.ts';
import { RealScheduler } from '../../base/clock.ts';
import { DdfError } from '../../base/errors.ts';
import { createLogger } from '../../base/logger.ts';
import { createRandom, type Random } from '../../base/random.ts';
import { AgentServer } from '../../controller/agents/agent-server.ts';
import type { FromAgent, Request, ToAgent } from '../../wire/agent/messages.ts';
import { type MessageInput, messageCodec, messagePlan, serviceDefinition } from '../../wire/proto.ts';
import { FakeController } from '../agents/fake-controller.ts';
import { FakeFabric } from '../agents/fake-fabric.ts';
import { helloOf } from '../controller/agents/fake-agent.ts';
import { leafSpine } from '../controller/planner/fixture.ts';
import { mutateBytes } from './mutate.ts';
import { mutateMessage } from './mutate-message.ts';
import { ensure, type FuzzTarget, pick, Tally } from './target.ts';

const fromAgentCodec = messageCodec<FromAgent>('ddf.agent.v1.FromAgent');
const toAgentCodec = messageCodec<ToAgent>('ddf.agent.v1.ToAgent');
const requestCodec = messageCodec<Request>('ddf.agent.v1.Request');

/** A client that sends bytes as they are. */
const RawClient = makeGenericClientConstructor(
  Object.fromEntries(
    Object.entries(serviceDefinition('ddf.agent.v1.AgentControl')).map(([name, method]) => [
      name,
      { ...method, requestSerialize: (bytes: Buffer) => bytes } as unknown as MethodDefinition<Buffer, ToAgent>,
    ]),
  ),
  'AgentControl',
);

const OBJECT = 0x0001_0000_0000_0009n;
const PAYLOAD = {
  objectId: OBJECT,
  version: 22,
  baseVersion: 21,
  sizeBytes: 5000n,
  manifestBytes: 150,
  manifestSha256: new Uint8Array(32),
  chunkBytes: 1 << 20,
};
const REQUESTS: readonly MessageInput<Request>[] = [
  { importVersion: { objectId: OBJECT, version: 1, path: '/nowhere/model' } },
  { makeDelta: { objectId: OBJECT, version: 22, baseVersion: 21 } },
  { allowRange: { token: 'token', objectId: OBJECT, version: 22, baseVersion: 0, ttlMs: 1000 } },
  { dropVersion: { objectId: OBJECT, version: 22 } },
  {
    prepareReceive: {
      label: 7,
      payload: PAYLOAD,
      segmentBytes: 1024,
      stripes: [{ label: 7, index: 0, count: 1, senderIp: '10.0.0.1', rttUs: 1000, sendDone: true }],
      targetRootSha256: new Uint8Array(32),
      eliminationUs: 1000,
      deadlineMs: 1000,
      holders: [],
    },
  },
  {
    startSend: {
      label: 8,
      payload: PAYLOAD,
      segmentBytes: 1024,
      destinationIp: '10.0.0.9',
      rateFloorBitsPerSecond: 1_000_000n,
      rateCeilingBitsPerSecond: 2_000_000n,
      rttUs: 1000,
      deadlineMs: 1000,
    },
  },
  {},
];
const REPLY_MS = 10_000;

/** Damaged messages between agents and the controller, both ways: each is answered or ends the stream, and both sides go on. */
export async function agentMessages(): Promise<FuzzTarget> {
  const tally = new Tally();
  const controllerSide = await openControllerSide(tally);
  const agentSide = await openAgentSide(tally);
  return {
    casesPerRound: 300,
    tally,
    round: async (random, cases, step) => {
      for (let i = 0; i < cases; i++) {
        if (random.chance(0.8)) codecs(random, tally, step);
        else if (random.chance(0.5)) await controllerSide.one(random, step);
        else await agentSide.one(random, step);
      }
      await controllerSide.check();
    },
    close: async () => {
      await controllerSide.close();
      await agentSide.close();
    },
  };
}

type Step = (detail: () => string) => void;

function codecs(random: Random, tally: Tally, step: Step): void {
  const up = random.chance(0.5);
  const codec = up ? fromAgentCodec : toAgentCodec;
  const sample = up
    ? fromAgentCodec.create({ hello: helloOf(topology, 'gpu01') as never })
    : toAgentCodec.create({ request: requestCodec.decode(requestCodec.encode(pick(random, REQUESTS))) });
  const message = mutateMessage(random, messagePlan(codec.fullName), sample, []);
  const bytes = mutateBytes(random, codec.encode(message as never));
  step(() => `${codec.fullName} ${Buffer.from(bytes).toString('hex')}`);
  try {
    const once = codec.encode(codec.decode(bytes) as never);
    const twice = codec.encode(codec.decode(once) as never);
    ensure(Buffer.from(once).equals(twice), () => 'a decoded message is encoded differently a second time');
    tally.add('decoded');
  } catch (error) {
    if (!(error instanceof DdfError && error.code === 'INVALID_REQUEST')) throw error;
    tally.add('undecodable');
  }
}

const topology = leafSpine();

interface Side {
  one(random: Random, step: Step): Promise<void>;
  check(): Promise<void>;
  close(): Promise<void>;
}

async function openControllerSide(tally: Tally): Promise<Side> {
  const scheduler = new RealScheduler();
  let fault: unknown;
  const logger = createLogger('silent');
  logger.error = ((fields: { err?: unknown }) => {
    fault ??= fields.err;
  }) as never;
  const server = new AgentServer({
    topology,
    controllerId: 'fuzz',
    scheduler,
    logger,
    listener: {
      attaching: () => ({ restarted: false }),
      attached: () => undefined,
      detached: () => undefined,
      transferStatus: () => undefined,
      versionHeld: () => undefined,
      versionDropped: () => undefined,
    },
  });
  const address = await server.listen('127.0.0.1:0');
  const client = new RawClient(address, credentials.createInsecure());
  const stream = (messages: readonly Uint8Array[]): Promise<boolean> =>
    new Promise((resolve) => {
      let welcomed = false;
      const call = client.Attach!({ deadline: Date.now() + REPLY_MS });
      call.on('data', (message: ToAgent) => {
        welcomed ||= message.welcome !== undefined;
      });
      call.on('error', () => resolve(welcomed));
      call.on('end', () => resolve(welcomed));
      for (const bytes of messages) call.write(Buffer.from(bytes));
      call.end();
    });
  return {
    one: async (random, step) => {
      const hello = {
        hello: helloOf(topology, 'gpu01', {
          incarnation: BigInt(random.below(100)),
          held: [{ objectId: 1n, version: 2, sizeBytes: 3n, rootSha256: new Uint8Array(32) }],
        }),
      };
      const others: MessageInput<FromAgent>[] = [
        hello,
        { reply: { requestId: 1n } },
        { transferStatus: { label: 3 } },
        { versionHeld: {} },
        { versionDropped: {} },
      ];
      const messages = [hello, ...Array.from({ length: random.below(4) }, () => pick(random, others))].map(
        (message) => {
          const sample = fromAgentCodec.decode(fromAgentCodec.encode(message));
          const damaged = random.chance(0.6)
            ? mutateMessage(random, messagePlan(fromAgentCodec.fullName), sample, [])
            : sample;
          const bytes = fromAgentCodec.encode(damaged as never);
          return random.chance(0.3) ? mutateBytes(random, bytes) : bytes;
        },
      );
      step(() => `to the controller ${messages.map((bytes) => Buffer.from(bytes).toString('hex')).join(' ')}`);
      tally.add((await stream(messages)) ? 'welcomed' : 'refused');
      ensure(fault === undefined, () => `the controller failed: ${fault instanceof Error ? fault.stack : fault}`);
    },
    check: async () => {
      const hello = fromAgentCodec.encode({ hello: helloOf(topology, 'gpu02', { incarnation: (1n << 64n) - 1n }) });
      ensure(await stream([hello]), () => 'the controller welcomes nobody any more');
    },
    close: async () => {
      client.close();
      await server.stop();
      scheduler.stop();
    },
  };
}

async function openAgentSide(tally: Tally): Promise<Side> {
  const directory = mkdtempSync(join(tmpdir(), 'ddf-fuzz-'));
  const scheduler = new RealScheduler();
  const controller = new FakeController();
  await controller.start();
  const workers = createWorkers({ threads: 1 });
  const fabric = new FakeFabric({ scheduler, random: createRandom('fabric'), loss: 0 });
  const agents: Agent[] = [];
  for (const [name, make, ip] of [
    ['memory', createMemoryNode, '10.0.0.1'],
    ['gpu', createGpuServer, '10.0.0.2'],
  ] as const) {
    const agent = make({
      name,
      host: fabric.host(ip),
      scheduler,
      random: createRandom(name),
      workers,
      storeDirectory: join(directory, name),
      storeDurable: false,
      controllerAddress: controller.address,
      incarnation: 1n,
      logger: createLogger('silent'),
    });
    await agent.start();
    await agent.whenAttached(REPLY_MS);
    agents.push(agent);
  }
  const ask = async (name: string, request: MessageInput<Request>): Promise<string> => {
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`${name} does not answer`)), REPLY_MS);
    });
    const { error } = await Promise.race([controller.ask(name, request), silence]).finally(() => clearTimeout(timer));
    if (error?.code === 'INTERNAL') throw new Error(`${name} failed: ${error.message}`);
    return error === undefined ? 'done' : error.code;
  };
  return {
    one: async (random, step) => {
      const sample = requestCodec.decode(requestCodec.encode(pick(random, REQUESTS)));
      const { requestId: _, ...request } = mutateMessage(random, messagePlan(requestCodec.fullName), sample, []);
      const name = pick(random, ['memory', 'gpu']);
      step(() => `to ${name} ${Buffer.from(requestCodec.encode(request as never)).toString('hex')}`);
      const code = await ask(name, request);
      tally.add(`agent ${code}`);
    },
    check: async () => undefined,
    close: async () => {
      for (const agent of agents) await agent.stop();
      controller.stop();
      await workers.close();
      scheduler.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
