import pino from 'pino';
import { VirtualScheduler } from '../../../base/clock.ts';
import { createRandom } from '../../../base/random.ts';
import { Device } from '../../../switch/device.ts';
import { type P4RuntimeServer, startP4RuntimeServer } from '../../../switch/server/p4runtime-server.ts';
import type { ForwardingPipelineConfig } from '../../../wire/p4runtime/messages.ts';
import { SetForwardingPipelineConfigRequestAction as ConfigAction } from '../../../wire/p4runtime/messages.ts';
import type { MessageInput } from '../../../wire/proto.ts';
import { CONFIG, CPU_PORT } from '../../conformance/server/program.ts';
import { TestClient, type TestStream } from './client.ts';

/** A server for two devices, 1 and 2, in virtual time, a client of the first, and what has to be closed. */
export class Bench {
  readonly scheduler: VirtualScheduler;
  readonly device: Device;
  readonly server: P4RuntimeServer;
  readonly client: TestClient;
  private readonly clients: TestClient[] = [];

  private constructor(scheduler: VirtualScheduler, device: Device, server: P4RuntimeServer) {
    this.scheduler = scheduler;
    this.device = device;
    this.server = server;
    this.client = this.newClient();
  }

  static async start(): Promise<Bench> {
    const scheduler = new VirtualScheduler();
    const devices = [1n, 2n].map(
      (deviceId) => new Device({ deviceId, cpuPort: CPU_PORT, clock: scheduler, random: createRandom(1) }),
    );
    const server = await startP4RuntimeServer({
      devices,
      address: '127.0.0.1:0',
      scheduler,
      logger: pino({ level: 'silent' }),
    });
    return new Bench(scheduler, devices[0]!, server);
  }

  /** With a primary (election id 1) and a program: that of the conformance checks unless another is given. */
  static async startWithProgram(
    config: MessageInput<ForwardingPipelineConfig> = CONFIG,
  ): Promise<Bench & { primary: TestStream }> {
    const bench = await Bench.start();
    const primary = await bench.client.contend(1n);
    const outcome = await bench.client.set(ConfigAction.VERIFY_AND_COMMIT, config);
    if (outcome.code !== 0) throw new Error(outcome.message);
    return Object.assign(bench, { primary });
  }

  newClient(): TestClient {
    const client = new TestClient(this.server.port);
    this.clients.push(client);
    return client;
  }

  async stop(): Promise<void> {
    for (const client of this.clients) client.close();
    await this.server.stop();
  }
}
