// Runs ddf.ts in this process. Plain Node.js: the packages that understand TypeScript may have to be installed first.
import { ensureInstalled } from './install.mjs';

/** Sets the exit code of the process; it ends when nothing is left to do. */
export async function runDdf(commandLine) {
  ensureInstalled();
  const { register } = await import('tsx/esm/api');
  register();
  const { main } = await import('./ddf.ts');
  process.exitCode = await main(commandLine);
}
