import { findExecutable } from './find-executable.ts';
import { findLeftovers, removeLeftovers } from './mininet/runs.ts';
import { koffiTool, mininetTool, rootTool, simpleSwitchTool, type Tool } from './mininet/tools.ts';
import type { Terminal } from './terminal.ts';

export interface DoctorOptions {
  readonly clean?: boolean;
  readonly json?: boolean;
}

/**
 * `ddf doctor`: what of the optional tools is there, what is skipped without the others, and what crashed runs have left; `--clean` removes that. Ends
 * with 0, since `npm start` and `npm test` need none of them.
 */
export async function runDoctor(options: DoctorOptions, terminal: Terminal): Promise<number> {
  const tools: Tool[] = [
    { name: 'Node.js', found: process.version, neededFor: 'everything', remedy: 'install Node.js 20.15 or newer' },
    rootTool(),
    mininetTool(),
    executable('ip', 'npm run mininet', 'apt-get install iproute2'),
    executable('ethtool', 'npm run mininet', 'apt-get install ethtool'),
    executable('tcpdump', 'looking at packets in namespaces', 'apt-get install tcpdump'),
    executable(
      'p4c-bm2-ss',
      'npm run p4:build; tests that compile the P4 sources',
      'build or install p4c and put it on PATH',
    ),
    simpleSwitchTool(),
    koffiTool(),
  ];
  const leftovers = findLeftovers();
  if (options.clean === true) await removeLeftovers(leftovers);
  if (options.json === true) {
    terminal.out(JSON.stringify({ tools, leftovers, removed: options.clean === true }));
    return 0;
  }
  const width = Math.max(...tools.map(({ name }) => name.length));
  for (const { name, found, neededFor, remedy } of tools)
    terminal.out(`${name.padEnd(width)}  ${found ?? `not there; without it skipped: ${neededFor} (${remedy})`}`);
  terminal.out('');
  if (leftovers.length === 0) terminal.out('No run in Mininet has left anything behind.');
  for (const { run, processes, devices, directories } of leftovers)
    terminal.out(
      `Run ${run} ${options.clean === true ? 'had' : 'has'} left ${processes.length} processes, ${devices.length} devices, ` +
        `${directories.length} directories${options.clean === true ? ': removed' : ''}`,
    );
  if (leftovers.length > 0 && options.clean !== true) terminal.out('`ddf doctor --clean` removes them.');
  return 0;
}

function executable(name: string, neededFor: string, remedy: string): Tool {
  return { name, found: findExecutable(name), neededFor, remedy };
}
