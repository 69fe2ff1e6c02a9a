import { type Code, type CodeValue, code, list, nothing } from './code.ts';

/**
 * Whether generated code tells `trace` (../trace/tracer.ts) what happens to the packet. A program is compiled without; the same
 * program with it is compiled when somebody first asks for a trace.
 */
export class Tracing {
  readonly on: boolean;

  constructor(on: boolean) {
    this.on = on;
  }

  /** A statement that calls one of the tracer's methods; nothing when tracing is off. */
  tell(method: Code, ...values: readonly CodeValue[]): Code {
    return this.on ? code`trace.${method}(${list(values.map((value) => code`${value}`))});` : nothing;
  }
}
