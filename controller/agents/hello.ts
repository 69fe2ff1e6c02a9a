import { DdfError } from '../../base/errors.ts';
import { RECEIVER_UDP_PORT_FIRST, RECEIVER_UDP_PORT_LAST } from '../../p4/build/constants.ts';
import type { HostNode, Topology } from '../../topologies/types.ts';
import { AgentKind, type HeldVersion, type Hello } from '../../wire/agent/messages.ts';
import type { AgentKindName, Claim } from '../directory/types.ts';

/** An agent as its hello described it, checked against the topology. */
export interface AttachedAgent {
  readonly name: string;
  readonly kind: AgentKindName;
  readonly incarnation: bigint;
  /** UDP port of its socket on the fabric; a GPU server's is in the receivers' range. */
  readonly receiverPort: number;
  /** Base of its range reads; empty: it serves none. */
  readonly rangeUrl: string;
  readonly held: readonly Claim[];
  readonly active: readonly { readonly objectId: bigint; readonly version: number }[];
}

const ROOT_BYTES = 32;
const MAX_HELD = 100_000;

/**
 * Takes a hello only if the topology has this host, of this kind and at this address.
 * @throws DdfError NOT_FOUND: no such host; INVALID_REQUEST: anything else about it is wrong
 */
export function checkHello(hello: Hello, topology: Topology): AttachedAgent {
  const host = topology.hosts.find((node) => node.name === hello.agentId);
  if (host === undefined)
    throw new DdfError('NOT_FOUND', `the topology ${topology.name} has no host "${hello.agentId}"`, {
      where: 'hello',
      remedy: "Start the agent with its host's name in the topology.",
    });
  const kind = kindName(hello.kind);
  if (kind !== host.kind)
    throw invalid(host, `is a ${host.kind}, not ${kind === undefined ? 'of an unknown kind' : `a ${kind}`}`);
  if (hello.fabricIp !== host.ip) throw invalid(host, `has the address ${host.ip}, not ${hello.fabricIp}`);
  const { receiverPort } = hello;
  const isReceiverPort = receiverPort >= RECEIVER_UDP_PORT_FIRST && receiverPort <= RECEIVER_UDP_PORT_LAST;
  if (kind === 'gpu-server' && !isReceiverPort)
    throw invalid(
      host,
      `receives on UDP port ${receiverPort}, which is not in ${RECEIVER_UDP_PORT_FIRST}..${RECEIVER_UDP_PORT_LAST}`,
    );
  if (hello.rangeUrl !== '' && !URL.canParse(hello.rangeUrl)) throw invalid(host, `gave no URL: ${hello.rangeUrl}`);
  if (hello.held.length > MAX_HELD) throw invalid(host, `holds more than ${MAX_HELD} versions`);
  return {
    name: host.name,
    kind,
    incarnation: hello.incarnation,
    receiverPort,
    rangeUrl: hello.rangeUrl,
    held: hello.held.map((version) => checkClaim(version, host.name)),
    active: hello.active.map(({ objectId, version }) => ({ objectId, version })),
  };
}

/** @throws DdfError INVALID_REQUEST */
export function checkClaim(held: HeldVersion, agent: string): Claim {
  if (held.rootSha256.length !== ROOT_BYTES || held.sizeBytes > BigInt(Number.MAX_SAFE_INTEGER) || held.version === 0)
    throw new DdfError(
      'INVALID_REQUEST',
      'a held version needs a version above 0, a size below 2^53 and a root of 32 bytes',
      {
        where: agent,
        remedy: 'Start the agent and the controller from the same release.',
      },
    );
  return {
    objectId: held.objectId,
    version: held.version,
    sizeBytes: Number(held.sizeBytes),
    root: held.rootSha256,
  };
}

function kindName(kind: number): AgentKindName | undefined {
  if (kind === AgentKind.MEMORY_NODE) return 'memory-node';
  return kind === AgentKind.GPU_SERVER ? 'gpu-server' : undefined;
}

function invalid(host: HostNode, what: string): DdfError {
  return new DdfError('INVALID_REQUEST', `${host.name} ${what}`, {
    where: 'hello',
    remedy: 'Start the agent as what the topology says this host is.',
  });
}
