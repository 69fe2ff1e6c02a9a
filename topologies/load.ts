/**
 * A topology file is YAML:
 *
 *     name: leaf-spine               # letters, digits, ._-
 *     mtu: 9000 B                    # largest IP packet on every link: 576 to 65535 B
 *     switches:                      # in the order of their device ids, from 1
 *       - name: spine{1..2}          # a name or a range of names
 *         layer: spine               # leaf | spine | core
 *       - name: leaf{1..4}
 *         layer: leaf
 *     hosts:
 *       - name: gpu{01..64}
 *         kind: gpu-server           # memory-node | gpu-server
 *         switch: leaf{1..4}         # 64 names over 4 leaves: the first 16 hang on leaf1, and so on
 *         port: 1                    # optional: first port on each of these switches; default: the next free ones from 1
 *         link: { rate: 1 Gb/s, delay: 10 us, queue: 256 frames }
 *     links:                         # every switch of `between` with every switch of `and`
 *       - between: leaf{1..4}
 *         and: spine{1..2}
 *         ports: [17, 1]             # optional: first port on each switch of either side; default: the next free ones above the hosts
 *         link: { rate: 4 Gb/s, delay: 10 us, queue: 512 frames }
 *
 * `rate` is in each direction, `delay` one way, `queue` what waits for the wire at most. All fields are required but those marked optional;
 * an unknown field is an error. `links` may be missing where there is one switch. YAML anchors and aliases work.
 */
import { assignNumbers, type DraftHost, type DraftLink, FIRST_PORT, LAST_PORT, MAX_LEAVES } from './assign.ts';
import { type Item, openDocument } from './document.ts';
import { DELAY, MTU, QUEUE, RATE } from './quantity.ts';
import type { HostNode, LinkProperties, SwitchNode, Topology } from './types.ts';

const LAYERS = ['leaf', 'spine', 'core'] as const;
const HOST_KINDS = ['memory-node', 'gpu-server'] as const;

/**
 * Parses and checks a topology and assigns every port and address.
 *
 * @param fileName only for messages
 * @throws DdfError INVALID_TOPOLOGY; `where` is `file:line field`
 */
export function loadTopology(text: string, fileName: string): Topology {
  const top = openDocument(text, fileName);
  const fields = top.fields(['name', 'mtu', 'switches', 'hosts'], ['links']);
  const names = fields.name.names();
  if (names.length !== 1) fields.name.fail('one name is expected');
  const mtuBytes = fields.mtu.quantity(MTU);

  const draft = new DraftBuilder();
  for (const item of fields.switches.list()) draft.addSwitches(item);
  if (draft.switches.size === 0) fields.switches.fail('a fabric has at least one switch');
  for (const item of fields.hosts.list()) draft.addHosts(item);
  for (const item of fields.links?.list() ?? []) draft.addLinks(item);
  draft.checkConnected();

  return assignNumbers({
    name: names[0]!,
    mtuBytes,
    switches: [...draft.switches.values()],
    hosts: draft.hosts,
    links: draft.links,
  });
}

type NamedSwitch = Pick<SwitchNode, 'name' | 'layer'> & { readonly item: Item };

class DraftBuilder {
  readonly switches = new Map<string, NamedSwitch>();
  readonly hosts: DraftHost[] = [];
  readonly links: DraftLink[] = [];
  private readonly names = new Set<string>();
  /** Explicit ports by switch: who has them. */
  private readonly ports = new Map<string, Map<number, string>>();
  private readonly attachments = new Map<string, number>();
  private leaves = 0;

  addSwitches(item: Item): void {
    const fields = item.fields(['name', 'layer']);
    const layer: SwitchNode['layer'] = fields.layer.oneOf(LAYERS);
    for (const name of fields.name.names()) {
      this.claimName(name, fields.name);
      if (layer === 'leaf' && ++this.leaves > MAX_LEAVES) fields.name.fail(`more than ${MAX_LEAVES} leaves`);
      this.switches.set(name, { name, layer, item: fields.name });
    }
  }

  addHosts(item: Item): void {
    const fields = item.fields(['name', 'kind', 'switch', 'link'], ['port']);
    const kind: HostNode['kind'] = fields.kind.oneOf(HOST_KINDS);
    const link = linkProperties(fields.link);
    const names = fields.name.names();
    const leaves = this.knownSwitches(fields.switch);
    if (names.length % leaves.length !== 0)
      fields.switch.fail(`${names.length} hosts do not spread evenly over ${leaves.length} switches`);
    const perLeaf = names.length / leaves.length;
    const firstPort = fields.port?.wholeNumber(FIRST_PORT, LAST_PORT);
    names.forEach((name, index) => {
      this.claimName(name, fields.name);
      const leaf = this.switches.get(leaves[Math.floor(index / perLeaf)]!)!;
      if (leaf.layer !== 'leaf')
        fields.switch.fail(`${leaf.name} is a ${leaf.layer} switch`, 'Hosts hang on leaf switches.');
      const host: DraftHost = { name, kind, switch: leaf.name, link };
      if (firstPort === undefined) this.hosts.push(host);
      else {
        const port = firstPort + (index % perLeaf);
        this.claimPort(leaf.name, port, name, fields.port!);
        this.hosts.push({ ...host, port });
      }
      this.countAttachment(leaf.name, fields.switch);
    });
  }

  addLinks(item: Item): void {
    const fields = item.fields(['between', 'and', 'link'], ['ports']);
    const link = linkProperties(fields.link);
    const sideA = this.knownSwitches(fields.between);
    const sideB = this.knownSwitches(fields.and);
    const ports = fields.ports?.list();
    if (ports !== undefined && ports.length !== 2)
      fields.ports!.fail('two ports are expected: the first on each switch of `between`, the first on each of `and`');
    const [firstA, firstB] = (ports ?? []).map((port) => port.wholeNumber(FIRST_PORT, LAST_PORT));
    sideA.forEach((a, indexA) => {
      sideB.forEach((b, indexB) => {
        if (a === b) fields.and.fail(`${a} would be linked with itself`);
        const end = (name: string, other: string, port: number | undefined): DraftLink['a'] => {
          this.countAttachment(name, item);
          if (port === undefined) return { switch: name };
          this.claimPort(name, port, `the link to ${other}`, fields.ports!);
          return { switch: name, port };
        };
        this.links.push({
          a: end(a, b, firstA === undefined ? undefined : firstA + indexB),
          b: end(b, a, firstB === undefined ? undefined : firstB + indexA),
          link,
        });
      });
    });
  }

  /** Every switch has a path to the first one. */
  checkConnected(): void {
    const first = this.switches.keys().next().value!;
    const reached = new Set([first]);
    for (const name of reached)
      for (const { a, b } of this.links) {
        if (a.switch === name) reached.add(b.switch);
        if (b.switch === name) reached.add(a.switch);
      }
    for (const { name, item } of this.switches.values())
      if (!reached.has(name))
        item.fail(`no path leads from ${first} to ${name}`, 'Connect all switches under `links`.');
  }

  private knownSwitches(item: Item): string[] {
    const names = item.names();
    for (const name of names) if (!this.switches.has(name)) item.fail(`unknown switch "${name}"`);
    return names;
  }

  private claimName(name: string, item: Item): void {
    if (this.names.has(name)) item.fail(`the name "${name}" is used twice`);
    this.names.add(name);
  }

  private claimPort(switchName: string, port: number, owner: string, item: Item): void {
    if (port > LAST_PORT)
      item.fail(`${owner} would get port ${port} of ${switchName}`, `The last port is ${LAST_PORT}.`);
    const owners = this.ports.get(switchName) ?? new Map<number, string>();
    const other = owners.get(port);
    if (other !== undefined) item.fail(`port ${port} of ${switchName} is used twice: by ${other} and by ${owner}`);
    owners.set(port, owner);
    this.ports.set(switchName, owners);
  }

  private countAttachment(switchName: string, item: Item): void {
    const count = (this.attachments.get(switchName) ?? 0) + 1;
    if (count > LAST_PORT)
      item.fail(`${switchName} has more attachments than ports`, `A switch has the ports ${FIRST_PORT}..${LAST_PORT}.`);
    this.attachments.set(switchName, count);
  }
}

function linkProperties(item: Item): LinkProperties {
  const fields = item.fields(['rate', 'delay', 'queue']);
  return {
    rateBitsPerSecond: fields.rate.quantity(RATE),
    delayUs: fields.delay.quantity(DELAY),
    queueFrames: fields.queue.quantity(QUEUE),
  };
}
