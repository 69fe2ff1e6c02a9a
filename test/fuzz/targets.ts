import type { FuzzTargetName } from '../../scripts/fuzz-run.ts';
import type { FuzzTarget } from './target.ts';

/** Loaded one at a time: a run needs but one, and some bring half of the project along. */
const TARGETS: { readonly [Name in FuzzTargetName]: () => Promise<FuzzTarget> } = {
  'packets/fabric': async () => (await import('./packets.ts')).fabricPackets(),
  'packets/parsers': async () => (await import('./packets.ts')).parserPackets(),
  'packets/transfer': async () => (await import('./transfers.ts')).transfers(),
  'programs/bmv2-json': async () => (await import('./programs.ts')).bmv2Programs(),
  'programs/p4info': async () => (await import('./programs.ts')).p4InfoTexts(),
  'requests/service': async () => (await import('./requests.ts')).requestsInProcess(),
  'requests/grpc': async () => (await import('./grpc-requests.ts')).requestsOverGrpc(),
  'agents/manifests': async () => (await import('./objects.ts')).manifests(),
  'agents/safetensors': async () => (await import('./objects.ts')).safetensors(),
  'agents/deltas': async () => (await import('./objects.ts')).deltas(),
  'agents/messages': async () => (await import('./agent-messages.ts')).agentMessages(),
  'agents/rest': async () => (await import('./rest.ts')).restRequests(),
  'agents/topologies': async () => (await import('./topologies.ts')).topologyTexts(),
};

export function openTarget(name: FuzzTargetName): Promise<FuzzTarget> {
  return TARGETS[name]();
}
