import { type Code, code, lines, name } from './code.ts';

/** A control-flow graph whose nodes know how to emit themselves. */
export interface Graph<Node extends object> {
  readonly entry: Node;
  /** Where a node may go; `undefined` is the end. */
  successors(node: Node): readonly (Node | undefined)[];
  /**
   * The node's code. Every path through it ends in a branch: `go(next)` gives the code that continues there. Two calls with the
   * same target are two branches.
   */
  emit(node: Node, go: (next: Node | undefined) => Code): Code;
  /** Leaves the graph, never falling through. */
  readonly end: Code;
  /** Runs at every turn of a loop, at least: has to see to it that it ends. */
  readonly turn: Code;
}

/**
 * Turns a graph into nested blocks: what one branch leads to stands where the branch is; what several lead to follows a labelled
 * block that they break out of. The dominator tree says where (N. Ramsey, "Beyond Relooper", ICFP 2022).
 */
export function structured<Node extends object>(graph: Graph<Node>, labels: LabelSource): Code {
  const order = reversePostorder(graph);
  const position = new Map(order.map((node, i) => [node, i]));
  const predecessors = new Map<Node, Node[]>(order.map((node) => [node, []]));
  for (const node of order)
    for (const next of graph.successors(node)) if (next !== undefined) predecessors.get(next)!.push(node);

  const dominators = computeDominators(order, position, predecessors);
  const isEnteredInItsMiddle = order.some((to) =>
    predecessors.get(to)!.some((from) => position.get(from)! >= position.get(to)! && !dominates(dominators, to, from)),
  );
  if (isEnteredInItsMiddle) return dispatched(graph, position, labels);
  const children = new Map<Node, Node[]>(order.map((node) => [node, []]));
  for (const node of order) {
    const dominator = dominators.get(node);
    if (dominator !== undefined && dominator !== node) children.get(dominator)!.push(node);
  }
  const forwardEdges = (node: Node): number =>
    predecessors.get(node)!.filter((from) => position.get(from)! < position.get(node)!).length;
  const isMerge = (node: Node): boolean => forwardEdges(node) > 1;
  const isLoop = (node: Node): boolean =>
    predecessors.get(node)!.some((from) => position.get(from)! >= position.get(node)!);

  const blockLabels = new Map<Node, Code>();
  const loopLabels = new Map<Node, Code>();

  const tree = (node: Node): Code => {
    const merges = children.get(node)!.filter(isMerge).reverse();
    if (!isLoop(node)) return within(node, merges);
    loopLabels.set(node, labels.next());
    return code`${loopLabels.get(node)!}: for (;;) {\n${graph.turn}\n${within(node, merges)}\n}`;
  };
  /** The node, then each of the merges, the last one outermost. */
  const within = (node: Node, merges: readonly Node[]): Code => {
    const [last, ...others] = merges;
    if (last === undefined) return graph.emit(node, (next) => branch(node, next));
    const label = labels.next();
    blockLabels.set(last, label);
    const inner = within(node, others);
    return lines([code`${label}: {\n${inner}\n}`, tree(last)]);
  };
  const branch = (from: Node, to: Node | undefined): Code => {
    if (to === undefined) return graph.end;
    if (position.get(to)! <= position.get(from)!) return code`continue ${loopLabels.get(to)!};`;
    return isMerge(to) ? code`break ${blockLabels.get(to)!};` : tree(to);
  };
  return tree(graph.entry);
}

/** A loop that is entered at several of its nodes fits into no nest of blocks: here a number says which node comes next. */
function dispatched<Node extends object>(
  graph: Graph<Node>,
  position: ReadonlyMap<Node, number>,
  labels: LabelSource,
): Code {
  const loop = labels.next();
  const at = labels.next();
  const go = (next: Node | undefined): Code =>
    next === undefined ? graph.end : code`{ ${at} = ${position.get(next)!}; continue ${loop}; }`;
  const cases = [...position].map(([node, i]) => code`case ${i}: {\n${graph.emit(node, go)}\n}`);
  return code`let ${at} = 0;\n${loop}: for (;;) {\n${graph.turn}\nswitch (${at}) {\n${lines(cases)}\n}\n}`;
}

/** Labels that are unique within a generated function. */
export class LabelSource {
  private count = 0;

  next(): Code {
    return name('L', this.count++);
  }
}

function reversePostorder<Node extends object>(graph: Graph<Node>): Node[] {
  const seen = new Set<Node>([graph.entry]);
  const postorder: Node[] = [];
  // An explicit stack: a program may chain thousands of tables.
  const stack = [{ node: graph.entry, next: [...graph.successors(graph.entry)] }];
  while (stack.length > 0) {
    const top = stack[stack.length - 1]!;
    const next = top.next.pop();
    if (next !== undefined) {
      if (!seen.has(next)) {
        seen.add(next);
        stack.push({ node: next, next: [...graph.successors(next)] });
      }
    } else if (top.next.length === 0) {
      postorder.push(top.node);
      stack.pop();
    }
  }
  return postorder.reverse();
}

/** Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001). */
function computeDominators<Node extends object>(
  order: readonly Node[],
  position: ReadonlyMap<Node, number>,
  predecessors: ReadonlyMap<Node, readonly Node[]>,
): Map<Node, Node> {
  const dominators = new Map<Node, Node>([[order[0]!, order[0]!]]);
  const meet = (a: Node, b: Node): Node => {
    let x = a;
    let y = b;
    while (x !== y) {
      if (position.get(x)! > position.get(y)!) x = dominators.get(x)!;
      else y = dominators.get(y)!;
    }
    return x;
  };
  for (let changed = true; changed; ) {
    changed = false;
    for (const node of order.slice(1)) {
      const known = predecessors.get(node)!.filter((from) => dominators.has(from));
      const dominator = known.reduce(meet);
      if (dominators.get(node) !== dominator) {
        dominators.set(node, dominator);
        changed = true;
      }
    }
  }
  return dominators;
}

function dominates<Node extends object>(dominators: ReadonlyMap<Node, Node>, a: Node, b: Node): boolean {
  for (let node = b; ; node = dominators.get(node)!) {
    if (node === a) return true;
    if (dominators.get(node) === node) return false;
  }
}
