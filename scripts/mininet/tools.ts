import { spawnSync } from 'node:child_process';
import { DdfError } from '../../base/errors.ts';
import { findExecutable } from '../find-executable.ts';

/** The Python that Debian's packages are made for; one of a version manager does not see them. */
export const SYSTEM_PYTHON = '/usr/bin/python3';
export const SIMPLE_SWITCH = 'simple_switch_grpc';
const PROBE_TIMEOUT_MS = 10_000;

/** One thing that a part of the project needs. */
export interface Tool {
  readonly name: string;
  /** What is there: a version or a path; undefined: it is not there. */
  readonly found: string | undefined;
  /** What does not work without it. */
  readonly neededFor: string;
  readonly remedy: string;
}

/** What `ddf mininet` needs of this machine, for the kind of switch. */
export function mininetTools(kind: 'embedded' | 'bmv2'): Tool[] {
  const executable = (name: string, debianPackage: string): Tool => ({
    name,
    found: findExecutable(name),
    neededFor: 'npm run mininet',
    remedy: `apt-get install ${debianPackage}`,
  });
  return [
    rootTool(),
    mininetTool(),
    executable('ip', 'iproute2'),
    executable('tc', 'iproute2'),
    executable('ethtool', 'ethtool'),
    executable('nsenter', 'util-linux'),
    executable('setpriv', 'util-linux'),
    kind === 'bmv2' ? simpleSwitchTool() : koffiTool(),
  ];
}

/** @throws DdfError MISSING_TOOL naming all that is missing */
export function requireTools(tools: readonly Tool[]): void {
  const missing = tools.filter(({ found }) => found === undefined);
  if (missing.length === 0) return;
  throw new DdfError('MISSING_TOOL', `this needs ${missing.map(({ name }) => name).join(', ')}`, {
    where: 'this machine',
    remedy: `${missing.map(({ remedy }) => remedy).join('; ')}. \`ddf doctor\` lists what is there.`,
  });
}

export function rootTool(): Tool {
  return {
    name: 'root',
    found: process.getuid?.() === 0 ? 'yes' : undefined,
    neededFor: 'npm run mininet; switches on network interfaces',
    remedy: 'run it with sudo',
  };
}

export function mininetTool(): Tool {
  const probe = spawnSync(SYSTEM_PYTHON, ['-c', 'import mininet.net; print(mininet.net.VERSION)'], {
    encoding: 'utf8',
    timeout: PROBE_TIMEOUT_MS,
  });
  return {
    name: 'mininet',
    found: probe.status === 0 ? probe.stdout.trim() : undefined,
    neededFor: 'npm run mininet',
    remedy: 'apt-get install mininet',
  };
}

export function simpleSwitchTool(): Tool {
  return {
    name: SIMPLE_SWITCH,
    found: findExecutable(SIMPLE_SWITCH),
    neededFor: 'npm run mininet -- --switch bmv2; the same tests on bmv2',
    remedy: `build behavioral-model with its P4Runtime server and put ${SIMPLE_SWITCH} on PATH`,
  };
}

export function koffiTool(): Tool {
  const script = "const { default: koffi } = await import('koffi'); console.log(koffi.version);";
  const probe = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
    timeout: PROBE_TIMEOUT_MS,
  });
  return {
    name: 'koffi',
    found: probe.status === 0 ? probe.stdout.trim() : undefined,
    neededFor: 'the embedded switch on network interfaces',
    remedy: 'npm ci',
  };
}
