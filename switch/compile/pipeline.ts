import type { Action, Pipeline, PipelineNode } from '../bmv2/program.ts';
import { type ActionContext, actionBody, loopGuard } from './action.ts';
import { type Code, code, comment, lines, name, nothing } from './code.ts';
import { type Graph, structured } from './control-flow.ts';
import { condition, type Scope } from './expression.ts';
import { emitTable, isPlainCall, type TableContext, tableSuccessors } from './table.ts';

/** Tables, conditionals and calls as one function without parameters. */
export function pipelineFunction(functionName: Code, pipeline: Pipeline, context: ActionContext): Code {
  if (pipeline.initial === undefined) return code`function ${functionName}() {}`;
  const scope: Scope = { layout: context.layout };
  const { tracing } = context;
  const leaveAfter = (action: Action): Code => (mayExit(action) ? code`if (exiting) return;` : nothing);
  const tables: TableContext = {
    scope,
    tracing,
    leaveAfter,
    call: (action, data) =>
      action.primitives.length === 0
        ? nothing
        : code`${actionName(action)}(${action.parameters.length === 0 ? nothing : data});`,
  };
  const graph: Graph<PipelineNode> = {
    entry: pipeline.initial,
    successors(node) {
      switch (node.kind) {
        case 'table':
          return tableSuccessors(node);
        case 'conditional':
          return [node.yes, node.no];
        case 'call':
          return [node.next];
      }
    },
    emit(node, go) {
      switch (node.kind) {
        case 'conditional': {
          const test = condition(node.condition, scope);
          const place = pipeline.nodes.indexOf(node);
          const told = tracing.tell(name('condition'), pipeline.name === 'egress', place, code`c`);
          const held = tracing.on ? code`((c) => { ${told} return c; })(${test})` : test;
          return code`if (${held}) {\n${go(node.yes)}\n} else {\n${go(node.no)}\n}`;
        }
        case 'call':
          return lines([inlined(node.action, context), leaveAfter(node.action), go(node.next)]);
        case 'table': {
          if (!isPlainCall(node)) return lines([comment(`table ${node.name}`), emitTable(node, tables, go)]);
          const { action } = node.defaultCall!;
          const after = tableSuccessors(node).map((next) => go(next));
          return lines([inlined(action, context), leaveAfter(action), ...after]);
        }
      }
    },
    end: code`return;`,
    turn: loopGuard,
  };
  const exits = context.layout.usage.exits ? code`exiting = false;` : nothing;
  return code`function ${functionName}() {\n${exits}\n${structured(graph, context.labels)}\n}`;
}

function inlined(action: Action, context: ActionContext): Code {
  const told = context.tracing.tell(name('action'), action.index);
  return code`${comment(action.name)} {\n${lines([told, actionBody(action, context)])}\n}`;
}

export function actionName(action: Action): Code {
  return name('A', action.index);
}

function mayExit(action: Action): boolean {
  return action.primitives.some((primitive) => primitive.kind === 'exit');
}

/** The actions that tables with keys, or with a default that may change, call on an entry's data `d`. */
export function actionFunctions(pipelines: readonly Pipeline[], context: ActionContext): Code[] {
  const called = new Set<Action>();
  for (const pipeline of pipelines)
    for (const node of pipeline.nodes)
      if (node.kind === 'table' && !isPlainCall(node)) for (const action of node.actions) called.add(action);
  return [...called]
    .filter((action) => action.primitives.length > 0)
    .map((action) => {
      const parameter = action.parameters.length === 0 ? nothing : name('d');
      return code`${comment(action.name)}
function ${actionName(action)}(${parameter}) {\n${actionBody(action, context)}\n}`;
    });
}
