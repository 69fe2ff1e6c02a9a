import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { DdfError } from '../../base/errors.ts';
import { planText } from '../planner/plan-text.ts';
import type {
  EndRule,
  HolderView,
  MulticastGroupView,
  ObjectView,
  PacketTraceView,
  Plan,
  RolloutRequest,
  RolloutView,
  StartRule,
  SwitchView,
  TraceRequest,
  VersionView,
} from '../service.ts';
import { ApiClient } from './client.ts';
import { bar, overviewText, rolloutText, table, versionText } from './format.ts';

/** Where commands write; the program's streams, or a test's. */
export interface Output {
  out(line: string): void;
  /** Redraws one line on a terminal; undefined where there is none. */
  redraw?: (line: string) => void;
  /** Sets the exit code of the process. */
  fail(exitCode: number): void;
}

interface Common {
  url: string;
  json?: boolean;
}

const DEFAULT_URL = process.env.DDF_URL ?? 'http://127.0.0.1:8080';

/** Exit codes of `ddf`: done, the work failed, the command line or the request was wrong. */
export const EXIT_CODES = { ok: 0, failed: 1, usage: 2 } as const;

function versionArgument(text: string): number {
  const version = Number(text);
  if (!/^\d+$/.test(text) || version < 1 || version > 0xffffffff) {
    throw new InvalidArgumentError('A version is a whole number from 1 to 4294967295.');
  }
  return version;
}

function secondsArgument(text: string): number {
  const seconds = Number(text);
  if (!(seconds > 0 && seconds <= 86400)) throw new InvalidArgumentError('Seconds are above 0 and at most 86400.');
  return seconds;
}

function wholeArgument(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It is a whole number.');
  return Number(text);
}

const RULE = /^(?:(all|deadline)|(quorum):([1-9]\d{0,8}))$/;

function endArgument(text: string): EndRule {
  const match = RULE.exec(text);
  if (match === null) throw new InvalidArgumentError('A rule is all, deadline, or quorum:N with a number of servers.');
  const rule = (match[1] ?? match[2]) as EndRule['rule'];
  return { rule, ...(match[3] === undefined ? {} : { servers: Number(match[3]) }) };
}

function startArgument(text: string): StartRule {
  const [rule, seconds, ...rest] = text.split('@');
  if (rest.length > 0) throw new InvalidArgumentError('Seconds follow the rule once, as in quorum:10@30.');
  return { ...endArgument(rule!), ...(seconds === undefined ? {} : { withinSeconds: secondsArgument(seconds) }) };
}

interface TraceOptions {
  admin?: string;
  port?: number;
  frame?: string;
  inject?: boolean;
  next?: number;
  seconds?: number;
}

/** Adds the commands that speak to a controller's REST API. */
export function registerCommands(program: Command, output: Output): void {
  const command = (name: string, description: string): Command =>
    program
      .command(name)
      .description(description)
      .option('--url <url>', 'the controller (environment: DDF_URL)', DEFAULT_URL)
      .option('--json', 'print JSON');

  const show = (options: Common, value: unknown, text: () => string): void =>
    output.out(options.json ? JSON.stringify(value) : text());

  command('publish', 'store a file as a version of an object on a Memory Node')
    .argument('<file>')
    .argument('<object>', 'name such as models/demo')
    .argument('<version>', 'version number', versionArgument)
    .option('--base <version>', 'also make the delta from this version', versionArgument)
    .option('--memory-node <name>', 'which Memory Node stores it (default: the one that holds the fewest bytes)')
    .action(
      async (
        file: string,
        object: string,
        version: number,
        options: Common & { base?: number; memoryNode?: string },
      ) => {
        const { base, memoryNode } = options;
        const view = await new ApiClient(options.url).post<VersionView>(versionsPath(object), {
          version,
          path: resolve(file),
          ...(base === undefined ? {} : { base }),
          ...(memoryNode === undefined ? {} : { memoryNode }),
        });
        show(options, view, () => versionText(view));
      },
    );

  command('versions', 'list the versions of an object, or all objects')
    .argument('[object]')
    .action(async (object: string | undefined, options: Common) => {
      const client = new ApiClient(options.url);
      if (object === undefined) {
        const objects = await client.list<ObjectView>('/v1/objects');
        show(options, objects, () =>
          table(
            ['OBJECT', 'ID', 'VERSIONS'],
            objects.map(({ name, objectId, versions }) => [name, objectId, versions.join(' ')]),
          ),
        );
        return;
      }
      const versions = await client.list<VersionView>(versionsPath(object));
      show(options, versions, () => versions.map(versionText).join('\n'));
    });

  command('holders', 'list who has proved to hold an object')
    .argument('<object>')
    .argument('[version]', 'only this version', versionArgument)
    .action(async (object: string, version: number | undefined, options: Common) => {
      const query = version === undefined ? '' : `?version=${version}`;
      const path = `/v1/objects/${encodeURIComponent(object)}/holders${query}`;
      const holders = await new ApiClient(options.url).list<HolderView>(path);
      show(options, holders, () =>
        table(
          ['HOLDER', 'KIND', 'VERSION', 'ATTACHED', 'SINCE'],
          holders.map(({ agent, kind, version, attached, since }) => [
            agent,
            kind,
            version,
            attached ? 'yes' : 'no',
            since,
          ]),
        ),
      );
    });

  const rolloutCommand = (name: string, description: string): Command =>
    command(name, description)
      .argument('<object>')
      .argument('<version>', 'the version to bring', versionArgument)
      .option('--servers <names>', 'comma-separated server names (default: all)', (text: string) =>
        text.split(',').filter((server) => server !== ''),
      )
      .option('--deadline <seconds>', 'after this, what is missing is read by unicast (default: 120)', secondsArgument)
      .option(
        '--start <rule>',
        'when senders start: all, quorum:N or deadline, each with @SECONDS (default: all@20)',
        startArgument,
      )
      .option('--end <rule>', 'what the rollout wants: all, quorum:N or deadline (default: all)', endArgument);

  rolloutCommand('plan', 'show what a rollout would do, and why; nothing is changed').action(
    async (object: string, version: number, options: Common & Targets) => {
      const plan = await new ApiClient(options.url).post<Plan>('/v1/plans', rolloutRequest(object, version, options));
      show(options, plan, () => planText(plan));
    },
  );

  rolloutCommand('rollout', 'bring a version to servers and wait until all of them have it')
    .option('--detach', 'do not wait')
    .action(async (object: string, version: number, options: Common & Targets & { detach?: boolean }) => {
      const client = new ApiClient(options.url);
      const started = await client.post<RolloutView>('/v1/rollouts', rolloutRequest(object, version, options));
      const ended = options.detach ? started : await follow(client, started.id, options.json ? undefined : output);
      show(options, ended, () => rolloutText(ended));
      if (!options.detach && !succeeded(ended)) output.fail(EXIT_CODES.failed);
    });

  command('status', 'show a rollout, or the switches and all rollouts')
    .argument('[rollout]', 'id of a rollout')
    .option('--watch', 'follow the rollout until it ends')
    .action(async (id: string | undefined, options: Common & { watch?: boolean }) => {
      const client = new ApiClient(options.url);
      if (id === undefined) {
        if (options.watch) {
          throw new DdfError('INVALID_OPTION', '--watch needs the id of a rollout', {
            remedy: '`ddf status` lists them.',
          });
        }
        const [switches, rollouts] = await Promise.all([
          client.list<SwitchView>('/v1/switches'),
          client.list<RolloutView>('/v1/rollouts'),
        ]);
        show(options, { switches, rollouts }, () => overviewText(switches, rollouts));
        return;
      }
      const path = `/v1/rollouts/${encodeURIComponent(id)}`;
      const rollout = options.watch
        ? await follow(client, id, options.json ? undefined : output)
        : await client.get<RolloutView>(path);
      show(options, rollout, () => rolloutText(rollout));
      if (options.watch && !succeeded(rollout)) output.fail(EXIT_CODES.failed);
    });

  command('groups', 'list groups of ordinary IP multicast and the hosts that have joined them').action(
    async (options: Common) => {
      const groups = await new ApiClient(options.url).list<MulticastGroupView>('/v1/multicast-groups');
      show(options, groups, () =>
        table(
          ['GROUP', 'REPLICATED', 'MEMBERS'],
          groups.map(({ group, replicated, members }) => [group, replicated ? 'yes' : 'no', members.join(' ')]),
        ),
      );
    },
  );

  command('trace', 'show what happens to packets inside a switch: states, tables, entries, actions, drops')
    .argument('<switch>', 'name of a switch')
    .option('--admin <url>', 'ask this switch itself: what `ddf switch --admin` names')
    .option('--port <n>', 'the port that the frame, or the packets, come by', wholeArgument)
    .option('--frame <hex>', 'try this frame: it leaves no marks')
    .option('--inject', 'really receive the frame')
    .option('--next <n>', 'without a frame: wait for so many packets (default: 1)', wholeArgument)
    .option('--seconds <n>', 'how long packets are waited for (default: 10)', secondsArgument)
    .action(async (name: string, options: Common & TraceOptions) => {
      const { admin, port, frame, inject, next, seconds } = options;
      const request: TraceRequest = {
        ...(port === undefined ? {} : { port }),
        ...(frame === undefined ? {} : { frame }),
        ...(inject === undefined ? {} : { inject }),
        ...(next === undefined ? {} : { count: next }),
        ...(seconds === undefined ? {} : { seconds }),
      };
      const path = admin === undefined ? `/v1/switches/${encodeURIComponent(name)}/traces` : '/v1/traces';
      const { items } = await new ApiClient(admin ?? options.url).post<{ items: PacketTraceView[] }>(path, request);
      show(options, items, () => items.map(({ text }) => text).join('\n') || 'no packet came');
    });

  command('abort', 'stop a rollout; what servers hold stays as it was')
    .argument('<rollout>', 'id of a rollout')
    .action(async (id: string, options: Common) => {
      const rollout = await new ApiClient(options.url).delete<RolloutView>(`/v1/rollouts/${encodeURIComponent(id)}`);
      show(options, rollout, () => rolloutText(rollout));
    });
}

interface Targets {
  servers?: string[];
  deadline?: number;
  start?: StartRule;
  end?: EndRule;
}

function versionsPath(object: string): string {
  return `/v1/objects/${encodeURIComponent(object)}/versions`;
}

function rolloutRequest(object: string, version: number, { servers, deadline, start, end }: Targets): RolloutRequest {
  return {
    object,
    version,
    servers: servers ?? 'all',
    ...(deadline === undefined ? {} : { deadlineSeconds: deadline }),
    ...(start === undefined ? {} : { start }),
    ...(end === undefined ? {} : { end }),
  };
}

function succeeded(rollout: RolloutView): boolean {
  return rollout.state === 'active';
}

/** Shows events until the rollout ends; then its last state. */
async function follow(client: ApiClient, id: string, output: Output | undefined): Promise<RolloutView> {
  for await (const { message, verified, total } of client.events(id)) {
    const line = `${bar(total === 0 ? 1 : verified / total)} ${verified}/${total}  ${message}`;
    (output?.redraw ?? output?.out)?.(line);
  }
  return client.get(`/v1/rollouts/${encodeURIComponent(id)}`);
}
