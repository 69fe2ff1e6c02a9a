import type { Action } from '../../wire/p4runtime/messages.ts';
import type { TableActionInfo, TableInfo } from '../../wire/p4runtime/p4info-objects.ts';
import type { ActionCall } from '../control.ts';
import type { FieldCodec, FieldValues } from './field-values.ts';
import { RpcError } from './rpc-error.ts';

interface Param {
  readonly id: number;
  readonly name: string;
  readonly codec: FieldCodec;
  /** Names the parameter in errors. */
  readonly place: string;
}

/** One action of a table, with what is needed for each of very many entries, made once. */
class CallFormat {
  readonly name: string;
  readonly scope: TableActionInfo['scope'];
  private readonly id: number;
  private readonly where: string;
  private readonly params: readonly Param[];

  constructor(values: FieldValues, { action, scope }: TableActionInfo, table: string) {
    this.name = action.name;
    this.scope = scope;
    this.id = action.id;
    this.where = `${table}, action ${action.name}`;
    this.params = action.params.map((param) => ({
      id: param.id,
      name: param.name,
      codec: values.codec(param),
      place: `${this.where}, parameter ${param.name}`,
    }));
  }

  parse(given: Action['params']): ActionCall {
    const strings = this.inOrder(given) ? given : this.sorted(given);
    const params: bigint[] = [];
    for (let i = 0; i < this.params.length; i++) {
      const { codec, place } = this.params[i]!;
      params.push(codec.decode(strings[i]!.value, place));
    }
    return { action: this.name, params };
  }

  /** Whether there is one value for each parameter, as most clients send them. */
  private inOrder(given: Action['params']): boolean {
    const { params } = this;
    if (given.length !== params.length) return false;
    for (let i = 0; i < params.length; i++) if (given[i]!.paramId !== params[i]!.id) return false;
    return true;
  }

  private sorted(given: Action['params']): Action['params'] {
    const { params, where } = this;
    const sorted = new Map<number, Action['params'][number]>();
    for (const one of given) {
      const param = params.find(({ id }) => id === one.paramId);
      if (param === undefined)
        throw new RpcError('INVALID_ARGUMENT', `${where}: there is no parameter with id ${one.paramId}`);
      if (sorted.has(one.paramId))
        throw new RpcError('INVALID_ARGUMENT', `${where}: parameter ${param.name} is given twice`);
      sorted.set(one.paramId, one);
    }
    return params.map(({ id, name }) => {
      const one = sorted.get(id);
      if (one === undefined) throw new RpcError('INVALID_ARGUMENT', `${where}: parameter ${name} is missing`);
      return one;
    });
  }

  message({ params }: ActionCall): Action {
    return {
      actionId: this.id,
      params: this.params.map(({ id, codec }, i) => ({ paramId: id, value: codec.encode(params[i]!) })),
    };
  }
}

/** The actions of one table, as messages and as the device's calls (P4Runtime 1.5, section "Action Specification"). */
export class CallFormats {
  private readonly where: string;
  private readonly byId: ReadonlyMap<number, CallFormat>;
  private readonly byName: ReadonlyMap<string, CallFormat>;

  constructor(values: FieldValues, table: TableInfo) {
    this.where = `Table ${table.name}`;
    const formats = table.actions.map((info): [number, CallFormat] => [
      info.action.id,
      new CallFormat(values, info, this.where),
    ]);
    this.byId = new Map(formats);
    this.byName = new Map(formats.map(([, format]) => [format.name, format]));
  }

  /** The parameters in the order of their declaration. Throws INVALID_ARGUMENT, PERMISSION_DENIED, or what a parameter's codec throws. */
  parse(action: Action, place: 'entry' | 'default'): ActionCall {
    const format = this.byId.get(action.actionId);
    if (format === undefined)
      throw new RpcError('INVALID_ARGUMENT', `${this.where} has no action with id 0x${action.actionId.toString(16)}`);
    if (format.scope === (place === 'entry' ? 'default only' : 'table only'))
      throw new RpcError(
        'PERMISSION_DENIED',
        `${this.where}: action ${format.name} is not allowed for ${place === 'entry' ? 'entries' : 'the default entry'}`,
      );
    return format.parse(action.params);
  }

  message(call: ActionCall): Action {
    const format = this.byName.get(call.action);
    if (format === undefined)
      throw new RpcError('INTERNAL', `${this.where} has an action ${call.action} that its P4Info lacks`);
    return format.message(call);
  }
}
