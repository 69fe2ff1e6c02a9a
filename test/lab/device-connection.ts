import type { WriteOutcome } from '../../controller/p4runtime/connection.ts';
import { canonicalEntity } from '../../controller/reconcile/canonical.ts';
import type { P4Program } from '../../lab/p4-program.ts';
import { insertEntities } from '../../lab/programming.ts';
import type { Device } from '../../switch/device.ts';
import { type Entity, type Update, UpdateType } from '../../wire/p4runtime/messages.ts';
import { FakeSwitch } from '../controller/fabric/fake-switch.ts';

/** Of `packet_in`: 16 bits of port, 8 of reason. */
const PACKET_IN_BYTES = 3;

/**
 * A controller's connection to a device of the same process, without P4Runtime between them: for tests in virtual time. Knows the kinds of entities that
 * the controller writes.
 */
export class DeviceConnection extends FakeSwitch {
  private readonly device: Device;
  private readonly program: P4Program;

  constructor(name: string, device: Device, program: P4Program) {
    super(name);
    this.device = device;
    this.program = program;
    device.onCpuFrame = (frame) => {
      const metadata = { ingress_port: BigInt((frame[0]! << 8) | frame[1]!), reason: BigInt(frame[2]!) };
      this.onPacket?.({ payload: frame.slice(PACKET_IN_BYTES), metadata });
    };
  }

  /** Loses everything, and the connection for a moment. */
  restart(): void {
    this.enter('down');
    this.entities.clear();
    this.load();
    this.enter('primary');
  }

  override async setPipeline(): Promise<'installed' | 'unchanged'> {
    if (this.device.program !== undefined) return 'unchanged';
    this.load();
    return 'installed';
  }

  override async write(updates: readonly Update[]): Promise<WriteOutcome> {
    const outcome = await super.write(updates);
    for (const { type, entity } of updates) {
      if (type === UpdateType.DELETE || (type === UpdateType.MODIFY && isEntry(entity!))) this.remove(entity!);
      if (type !== UpdateType.DELETE) this.insert(entity!);
    }
    return outcome;
  }

  override sendPacket(payload: Uint8Array, metadata: Readonly<Record<string, bigint>>): boolean {
    const port = Number(metadata.egress_port);
    this.device.sendFromCpu(Uint8Array.of(port >> 8, port & 255, ...payload));
    return super.sendPacket(payload, metadata);
  }

  private load(): void {
    this.device.load(this.device.compile(this.program.bmv2Json));
  }

  private insert(entity: Entity): void {
    const { index } = this.program;
    insertEntities(this.device.program!, index, [entity]);
    if (!isEntry(entity)) return;
    const { name } = index.tables.require(entity.tableEntry!.tableId);
    const newest = [...this.device.program!.tables.get(name)!.entries()].at(-1)!;
    newest.note = canonicalEntity(entity)!.key;
  }

  private remove(entity: Entity): void {
    const { program } = this.device;
    const group = entity.packetReplicationEngineEntry?.multicastGroupEntry;
    if (group !== undefined) program!.deleteMulticastGroup(group.multicastGroupId);
    if (!isEntry(entity)) return;
    const table = program!.tables.get(this.program.index.tables.require(entity.tableEntry!.tableId).name)!;
    const { key } = canonicalEntity(entity)!;
    table.delete([...table.entries()].find(({ note }) => note === key)!);
  }
}

function isEntry({ tableEntry }: Entity): boolean {
  return tableEntry !== undefined && !tableEntry.isDefaultAction;
}
