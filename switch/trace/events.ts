/**
 * What happened to a packet, in the order in which it happened and in the names of the P4 program. Safe for JSON: numbers that a
 * program computes with are hexadecimal strings (`0x1f`), frames are hexadecimal without prefix.
 */
export type TraceEvent =
  /** A pass begins. `instanceType`: 0 as it arrived, 4 recirculated, 6 resubmitted. */
  | {
      readonly kind: 'ingress';
      readonly port: number;
      readonly instanceType: number;
      readonly bytes: number;
      readonly frame: string;
    }
  | { readonly kind: 'parser-state'; readonly state: string }
  /** `error`: the name of the parser's error, absent when there was none. */
  | { readonly kind: 'parsed'; readonly bytes: number; readonly headers: readonly string[]; readonly error?: string }
  | {
      readonly kind: 'table';
      readonly table: string;
      readonly keys: readonly TracedKey[];
      /** Absent in a table without keys. */
      readonly hit?: boolean;
      /** Of the entry that was hit. */
      readonly entry?: { readonly match: readonly string[]; readonly priority: number };
      /** Absent: nothing ran, for want of a default action or of a member of the selector that is up. */
      readonly action?: TracedAction;
    }
  /** An action that the program calls without a table. */
  | { readonly kind: 'action'; readonly action: string }
  | { readonly kind: 'condition'; readonly condition: string; readonly holds: boolean }
  /** The metadata that are not zero after a pipeline. */
  | { readonly kind: 'metadata'; readonly after: 'ingress' | 'egress'; readonly values: readonly TracedValue[] }
  | { readonly kind: 'clone'; readonly at: 'ingress' | 'egress'; readonly session: number; readonly copies: number }
  | {
      readonly kind: 'digest';
      readonly digest: string;
      readonly values: readonly string[];
    }
  | { readonly kind: 'resubmit' }
  | { readonly kind: 'recirculate'; readonly bytes: number }
  | { readonly kind: 'multicast'; readonly group: number; readonly copies: number }
  | { readonly kind: 'drop'; readonly at: 'ingress' | 'egress' | 'queue' }
  /** A copy enters egress. */
  | { readonly kind: 'egress'; readonly port: number; readonly instance: number; readonly instanceType: number }
  | { readonly kind: 'log'; readonly message: string }
  | {
      readonly kind: 'transmit';
      readonly port: number;
      readonly bytes: number;
      readonly headers: readonly string[];
      readonly frame: string;
    }
  /** Processing failed here; the rest of the packet is lost. */
  | { readonly kind: 'fault'; readonly message: string }
  /** There was more than a trace holds. */
  | { readonly kind: 'cut' };

export interface TracedKey {
  readonly name: string;
  readonly match: string;
  readonly value: string;
}

export interface TracedAction {
  readonly name: string;
  readonly parameters: readonly TracedValue[];
}

export interface TracedValue {
  readonly name: string;
  readonly value: string;
}

/** A packet that came to the device, and what became of it. */
export interface PacketTrace {
  readonly port: number;
  /** On the device's clock, microseconds. */
  readonly atUs: number;
  readonly events: readonly TraceEvent[];
}
