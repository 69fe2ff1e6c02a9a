import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DdfError } from '../../base/errors.ts';
import { createRandom, type Random } from '../../base/random.ts';
import { BUILD_DIRECTORY } from '../../scripts/p4-build.ts';
import { RpcCode } from '../../switch/server/rpc-error.ts';
import type {
  Entity,
  ForwardingPipelineConfig,
  ReadRequest,
  SetForwardingPipelineConfigRequest,
  StreamMessageRequest,
  Uint128,
  Update,
  WriteRequest,
} from '../../wire/p4runtime/messages.ts';
import {
  SetForwardingPipelineConfigRequestAction as ConfigAction,
  UpdateType,
  WriteRequestAtomicity,
} from '../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../wire/p4runtime/p4info-text.ts';
import { type MessageCodec, messageCodec, messagePlan } from '../../wire/proto.ts';
import { WatchedDevice } from './device.ts';
import { type Answer, InProcessServer, type InProcessStream } from './in-process.ts';
import { mutateBytes, randomBytes } from './mutate.ts';
import { mutateMessage } from './mutate-message.ts';
import { READ_ALL, RequestModel } from './request-model.ts';
import { RequestSamples } from './request-samples.ts';
import { ensure, type FuzzTarget, pick, Tally } from './target.ts';

export const writeCodec = messageCodec<WriteRequest>('p4.v1.WriteRequest');
export const readCodec = messageCodec<ReadRequest>('p4.v1.ReadRequest');
export const setCodec = messageCodec<SetForwardingPipelineConfigRequest>('p4.v1.SetForwardingPipelineConfigRequest');
export const streamCodec = messageCodec<StreamMessageRequest>('p4.v1.StreamMessageRequest');

export interface RequestProgram {
  readonly info: P4InfoIndex;
  readonly config: ForwardingPipelineConfig;
  readonly samples: RequestSamples;
}

export function requestProgram(json: string | URL, p4Info: string | URL): RequestProgram {
  const info = new P4InfoIndex(parseP4InfoText(readFileSync(p4Info, 'utf8')));
  return {
    info,
    config: { p4info: info.p4Info, p4DeviceConfig: new Uint8Array(readFileSync(json)) },
    samples: new RequestSamples(info),
  };
}

export function requestPrograms(): RequestProgram[] {
  const compiled = (name: string): RequestProgram =>
    requestProgram(new URL(`${name}.json`, import.meta.url), new URL(`${name}.p4info.txtpb`, import.meta.url));
  return [
    requestProgram(join(BUILD_DIRECTORY, 'fabric.json'), join(BUILD_DIRECTORY, 'fabric.p4info.txtpb')),
    compiled('program/parsers'),
    compiled('../conformance/program/conformance'),
    compiled('../conformance/program/translation'),
  ];
}

/** Requests of all kinds, damaged as messages and as bytes, into the P4Runtime service of a device; what it says must be what it holds. */
export function requestsInProcess(): FuzzTarget {
  const programs = requestPrograms();
  const tally = new Tally();
  const watched = new WatchedDevice(createRandom('device'));
  return {
    casesPerRound: 1000,
    tally,
    round: async (random, cases, step) => {
      const round = new Round(random, pick(random, programs), tally, watched);
      await round.open();
      for (let i = 0; i < cases; i++) {
        step(() => round.last);
        await round.next();
        if (i % 100 === 99) await round.compare();
      }
      await round.finish();
    },
  };
}

class Round {
  last = '';
  private readonly random: Random;
  private readonly program: RequestProgram;
  private readonly tally: Tally;
  private readonly server: InProcessServer;
  private readonly model: RequestModel;
  private readonly streams: InProcessStream[] = [];
  private primary: InProcessStream;
  private electionId: Uint128 = { high: 0n, low: 1n };
  /** A call that failed inside the switch. */
  private fault: unknown;

  constructor(random: Random, program: RequestProgram, tally: Tally, watched: WatchedDevice) {
    this.random = random;
    this.program = program;
    this.model = new RequestModel(program.info);
    this.tally = tally;
    watched.restart(random.fork('device'));
    const error = (fields: { err?: unknown }): void => {
      this.fault ??= fields.err ?? fields;
    };
    const warn = (): void => undefined;
    this.server = new InProcessServer(watched.device, watched.scheduler, {
      error,
      warn,
      info: warn,
      debug: warn,
    } as never);
    this.primary = this.server.stream();
  }

  async open(): Promise<void> {
    this.bid(this.primary);
    await this.setPipeline();
  }

  async next(): Promise<void> {
    const { random } = this;
    const kind = random.below(40);
    if (kind < 24) await this.write();
    else if (kind < 32) await this.read();
    else if (kind < 33) await this.set();
    else if (kind < 38) this.stream();
    else await this.get();
    this.checkFault();
  }

  /** Reads everything and holds it against the model. */
  async compare(): Promise<void> {
    this.model.compare(await this.readAll());
  }

  /** Takes everything away, then puts back what was read: a server must accept what it has said. */
  async finish(): Promise<void> {
    await this.compare();
    const read = await this.readAll();
    const own = read.filter(({ tableEntry }) => tableEntry?.isConst !== true);
    await this.mustWrite(own.map((entity) => ({ type: UpdateType.DELETE, entity })));
    const left = await this.readAll();
    ensure(left.length === read.length - own.length, () => `${left.length} entries are left after all were deleted`);
    await this.mustWrite(own.map((entity) => ({ type: UpdateType.INSERT, entity })));
    const again = await this.readAll();
    this.model.compare(again);
    for (const stream of [this.primary, ...this.streams]) stream.close();
    this.server.stop();
    this.checkFault();
  }

  private async mustWrite(updates: readonly Update[]): Promise<void> {
    const answer = await this.server.unary('Write', writeCodec.create({ ...this.header(), updates: [...updates] }));
    ensure(answer.code === 0, () => `the server refused what it had said itself: ${answer.message}`);
  }

  private header(): { deviceId: bigint; electionId: Uint128 } {
    return { deviceId: 1n, electionId: this.electionId };
  }

  private async readAll(): Promise<readonly Entity[]> {
    const answer = await this.server.read(readCodec.create({ deviceId: 1n, entities: [...READ_ALL] }));
    ensure(answer.code === 0, () => `a read of everything failed with ${answer.code}: ${answer.message}`);
    return answer.entities;
  }

  /** The message damaged: as a message, as bytes, or not at all; `undefined` if its bytes are no such message any more. */
  private damage<T extends object>(codec: MessageCodec<T>, message: T): T | undefined {
    const { random } = this;
    const way = random.below(10);
    const damaged =
      way < 7 ? mutateMessage(random, messagePlan(codec.fullName), message, this.program.samples.ids) : message;
    const bytes = codec.encode(damaged as never);
    this.last = `${codec.fullName} ${Buffer.from(bytes.subarray(0, 4000)).toString('hex')}`;
    try {
      return codec.decode(way === 7 || way === 8 ? mutateBytes(random, bytes) : bytes);
    } catch (error) {
      if (!(error instanceof DdfError && error.code === 'INVALID_REQUEST')) throw error;
      this.tally.add('undecodable');
      return undefined;
    }
  }

  private async write(): Promise<void> {
    const { random, program } = this;
    const updates = Array.from({ length: 1 + random.below(random.chance(0.9) ? 4 : 200) }, () =>
      program.samples.update(random),
    );
    const atomicity = random.chance(0.8) ? WriteRequestAtomicity.CONTINUE_ON_ERROR : random.below(4);
    const request = this.damage(writeCodec, writeCodec.create({ ...this.header(), updates, atomicity }));
    if (request === undefined) return;
    const answer = await this.server.unary('Write', request);
    this.count('write', answer);
    const outcomes = answer.code === 0 ? request.updates.map(() => 0) : answer.errors;
    if (outcomes === undefined) return;
    ensure(
      outcomes.length === request.updates.length,
      () => `${outcomes.length} outcomes for ${request.updates.length} updates`,
    );
    ensure(!outcomes.includes(RpcCode.INTERNAL), () => `an update failed inside the switch: ${answer.message}`);
    if (answer.code !== 0 && request.atomicity !== WriteRequestAtomicity.CONTINUE_ON_ERROR) return;
    request.updates.forEach((update, i) => {
      this.tally.add(outcomes[i] === 0 ? 'update ok' : 'update refused');
      if (outcomes[i] === 0) this.model.apply(update);
    });
  }

  private async read(): Promise<void> {
    const { random, program } = this;
    const entities = Array.from({ length: 1 + random.below(3) }, () => program.samples.entity(random));
    const request = this.damage(readCodec, readCodec.create({ deviceId: 1n, entities }));
    if (request !== undefined) this.count('read', await this.server.read(request));
  }

  private async set(): Promise<void> {
    const { random, program } = this;
    const config = { ...program.config };
    // Damage to the program itself is another target's work; here it only has to fail well.
    if (random.chance(0.3)) config.p4DeviceConfig = mutateBytes(random, config.p4DeviceConfig);
    const request = this.damage(setCodec, setCodec.create({ ...this.header(), action: 1 + random.below(5), config }));
    if (request === undefined) return;
    const answer = await this.server.unary('SetForwardingPipelineConfig', request);
    this.count('set', answer);
    // What was accepted may be another program, or wait for its commit.
    if (answer.code === 0) await this.setPipeline();
  }

  private async setPipeline(): Promise<void> {
    const { config } = this.program;
    const request = setCodec.create({ ...this.header(), action: ConfigAction.VERIFY_AND_COMMIT, config });
    const answer = await this.server.unary('SetForwardingPipelineConfig', request);
    ensure(answer.code === 0, () => `the undamaged program is refused: ${answer.message}`);
    this.model.reset(await this.readAll());
  }

  private async get(): Promise<void> {
    this.count(
      'get',
      await this.server.unary('GetForwardingPipelineConfig', { deviceId: 1n, responseType: this.random.below(5) }),
    );
    this.count('get', await this.server.unary('Capabilities', { deviceId: BigInt(this.random.below(3)) }));
  }

  private stream(): void {
    const { random } = this;
    const message = this.damage(streamCodec, this.streamMessage());
    if (message === undefined) return;
    if (this.streams.length === 0 || random.chance(0.3)) this.streams.push(this.server.stream());
    const stream = random.chance(0.3) ? this.primary : pick(random, this.streams);
    stream.send(message);
    if (random.chance(0.2)) pick(random, this.streams).close();
    for (let i = this.streams.length - 1; i >= 0; i--)
      if (this.streams.length > 6 || this.streams[i]!.ended !== undefined) this.streams.splice(i, 1)[0]!.close();
    this.tally.add(stream.ended === undefined ? 'stream ok' : 'stream ended');
    this.restorePrimary();
  }

  private streamMessage(): StreamMessageRequest {
    const { random } = this;
    switch (random.below(4)) {
      case 0:
        return streamCodec.create({
          arbitration: { deviceId: 1n, electionId: { high: 0n, low: BigInt(random.below(4)) } } as never,
        });
      case 1:
        return streamCodec.create({
          digestAck: { digestId: pick(random, this.program.samples.ids), listId: BigInt(random.below(3)) },
        });
      default: {
        const metadata = [{ metadataId: 1, value: Uint8Array.from([random.below(256)]) }];
        return streamCodec.create({
          packet: { payload: randomBytes(random, random.below(80)), metadata: random.chance(0.8) ? metadata : [] },
        });
      }
    }
  }

  /** A damaged bid may have won: whoever has the highest election id is primary, so this side takes that id once it is free. */
  private restorePrimary(): void {
    for (const response of [...this.primary.received, ...this.streams.flatMap(({ received }) => received)]) {
      const id = response.arbitration?.role === undefined ? response.arbitration?.electionId : undefined;
      if (
        id !== undefined &&
        (id.high > this.electionId.high || (id.high === this.electionId.high && id.low > this.electionId.low))
      )
        this.electionId = id;
    }
    for (const stream of this.streams.splice(0)) stream.close();
    this.primary.close();
    this.primary = this.server.stream();
    this.bid(this.primary);
  }

  private bid(stream: InProcessStream): void {
    stream.send(streamCodec.create({ arbitration: { deviceId: 1n, electionId: this.electionId } as never }));
    const status = stream.received[0]?.arbitration?.status?.code;
    ensure(status === 0, () => `the highest bid did not win: status ${status}, stream ended with ${stream.ended}`);
  }

  private count(what: string, { code, message }: Answer): void {
    this.tally.add(`${what} ${code === 0 ? 'ok' : 'refused'}`);
    ensure(code !== RpcCode.INTERNAL, () => `a call failed inside the switch: ${message}`);
  }

  private checkFault(): void {
    const { fault } = this;
    ensure(
      fault === undefined,
      () => `the switch reported a fault: ${fault instanceof Error ? fault.stack : JSON.stringify(fault)}`,
    );
  }
}
