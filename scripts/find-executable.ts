import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The path of an executable, if it is on PATH or where administrators' tools are. */
export function findExecutable(name: string): string | undefined {
  for (const directory of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin']) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this directory.
    }
  }
  return undefined;
}
