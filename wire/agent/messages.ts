// Generated from the schemas beside it by `npx tsx scripts/wire-generate.ts`. Do not edit.

/** ddf.agent.v1.FromAgent */
export interface FromAgent {
  hello?: Hello;
  reply?: Reply;
  transferStatus?: TransferStatus;
  versionHeld?: HeldVersion;
  versionDropped?: ObjectVersion;
}

/** ddf.agent.v1.ToAgent */
export interface ToAgent {
  welcome?: Welcome;
  request?: Request;
  refused?: AgentError;
}

/** ddf.agent.v1.AgentKind */
export const AgentKind = {
  AGENT_KIND_UNSPECIFIED: 0,
  MEMORY_NODE: 1,
  GPU_SERVER: 2,
} as const;
export type AgentKind = number;

/** ddf.agent.v1.Hello */
export interface Hello {
  agentId: string;
  kind: AgentKind;
  incarnation: bigint;
  fabricIp: string;
  receiverPort: number;
  rangeUrl: string;
  held: HeldVersion[];
  active: ObjectVersion[];
}

/** ddf.agent.v1.Welcome */
export interface Welcome {
  controllerId: string;
}

/** ddf.agent.v1.ObjectVersion */
export interface ObjectVersion {
  objectId: bigint;
  version: number;
}

/** ddf.agent.v1.HeldVersion */
export interface HeldVersion {
  objectId: bigint;
  version: number;
  sizeBytes: bigint;
  rootSha256: Uint8Array;
}

/** ddf.agent.v1.Payload */
export interface Payload {
  objectId: bigint;
  version: number;
  baseVersion: number;
  sizeBytes: bigint;
  manifestBytes: number;
  manifestSha256: Uint8Array;
}

/** ddf.agent.v1.Request */
export interface Request {
  requestId: bigint;
  importVersion?: ImportVersion;
  makeDelta?: MakeDelta;
  prepareReceive?: PrepareReceive;
  startSend?: StartSend;
  endTransfer?: EndTransfer;
  activateVersion?: ActivateVersion;
  dropVersion?: ObjectVersion;
  updateSend?: UpdateSend;
  allowRange?: AllowRange;
  updateReceive?: UpdateReceive;
}

/** ddf.agent.v1.Reply */
export interface Reply {
  requestId: bigint;
  error?: AgentError;
  imported?: HeldVersion;
  payload?: Payload;
}

/** ddf.agent.v1.AgentError */
export interface AgentError {
  code: string;
  message: string;
  where: string;
  remedy: string;
}

/** ddf.agent.v1.ImportVersion */
export interface ImportVersion {
  objectId: bigint;
  version: number;
  path: string;
}

/** ddf.agent.v1.MakeDelta */
export interface MakeDelta {
  objectId: bigint;
  baseVersion: number;
  version: number;
}

/** ddf.agent.v1.Holder */
export interface Holder {
  rangeUrl: string;
  token: string;
}

/** ddf.agent.v1.AllowRange */
export interface AllowRange {
  token: string;
  objectId: bigint;
  version: number;
  baseVersion: number;
  ttlMs: number;
}

/** ddf.agent.v1.Stripe */
export interface Stripe {
  label: number;
  index: number;
  count: number;
  senderIp: string;
  rttUs: number;
  sendDone: boolean;
}

/** ddf.agent.v1.PrepareReceive */
export interface PrepareReceive {
  label: number;
  payload?: Payload;
  segmentBytes: number;
  stripes: Stripe[];
  targetRootSha256: Uint8Array;
  holders: Holder[];
  deadlineMs: number;
  eliminationUs: number;
}

/** ddf.agent.v1.UpdateReceive */
export interface UpdateReceive {
  label: number;
  stripes: Stripe[];
}

/** ddf.agent.v1.StartSend */
export interface StartSend {
  label: number;
  payload?: Payload;
  segmentBytes: number;
  destinationIp: string;
  rateFloorBitsPerSecond: bigint;
  rateCeilingBitsPerSecond: bigint;
  rttUs: number;
  firstBlock: number;
  deadlineMs: number;
  expectDone: boolean;
  stripeIndex: number;
  stripeCount: number;
  expectedLossPpm: number;
  probeReceivers: number;
}

/** ddf.agent.v1.UpdateSend */
export interface UpdateSend {
  label: number;
  rateFloorBitsPerSecond: bigint;
  rateCeilingBitsPerSecond: bigint;
}

/** ddf.agent.v1.EndTransfer */
export interface EndTransfer {
  label: number;
  complete: boolean;
}

/** ddf.agent.v1.ActivateVersion */
export interface ActivateVersion {
  objectId: bigint;
  version: number;
}

/** ddf.agent.v1.TransferState */
export const TransferState = {
  TRANSFER_STATE_UNSPECIFIED: 0,
  SENDING: 1,
  SENT: 2,
  RECEIVING: 3,
  RECONSTRUCTING: 4,
  VERIFIED: 5,
  CLOSED: 6,
  FAILED: 7,
} as const;
export type TransferState = number;

/** ddf.agent.v1.TransferStatus */
export interface TransferStatus {
  label: number;
  state: TransferState;
  bytesDone: bigint;
  error?: AgentError;
  sender?: SenderCounters;
  receiver?: ReceiverCounters;
  pathSegmentBytes: number;
}

/** ddf.agent.v1.SenderCounters */
export interface SenderCounters {
  dataPackets: bigint;
  repairPackets: bigint;
  syncPackets: bigint;
  frameBytes: bigint;
  nacksReceived: bigint;
  nacksIgnored: bigint;
  reportsReceived: bigint;
  doneReceived: boolean;
  rateBitsPerSecond: bigint;
  packetsRejected: bigint;
  parityAheadPackets: bigint;
  rttUs: number;
  probePackets: bigint;
  probeAnswers: bigint;
  donesIgnored: bigint;
  rejectedLength: bigint;
  rejectedVersion: bigint;
  rejectedType: bigint;
  rejectedSymbol: bigint;
  rejectedCrc: bigint;
  rejectedLabel: bigint;
  rejectedObject: bigint;
  rejectedBlock: bigint;
}

/** ddf.agent.v1.ReceiverCounters */
export interface ReceiverCounters {
  dataPackets: bigint;
  repairPackets: bigint;
  repairUnneeded: bigint;
  duplicates: bigint;
  lostSymbols: bigint;
  nacksSent: bigint;
  blocksDecoded: bigint;
  packetsRejected: bigint;
  chunksVerified: bigint;
  chunksFailed: bigint;
  unicastBytes: bigint;
  unicastRequests: bigint;
  reportsSent: bigint;
  rttUs: number;
  probePackets: bigint;
  syncPackets: bigint;
  packetsLate: bigint;
  rejectedLength: bigint;
  rejectedVersion: bigint;
  rejectedType: bigint;
  rejectedSymbol: bigint;
  rejectedCrc: bigint;
  rejectedLabel: bigint;
  rejectedObject: bigint;
  rejectedBlock: bigint;
}
