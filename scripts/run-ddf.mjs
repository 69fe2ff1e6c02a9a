// Runs ddf.ts in this process. Plain Node.js: the packages that understand TypeScript may have to be installed first.
import { ensureInstalled } from './install.mjs';

/** Sets the exit code of the process; it ends when nothing is left to do. */
export async function runDdf(commandLine) {
  ensureInstalled();
  // Whoever read the output has seen enough, as in `ddf versions | head`.
  process.stdout.on('error', (error) => {
    if (error.code === 'EPIPE') process.exit();
    throw error;
  });
  // Its cache of translated files would stay in the temporary directory; without it a start takes a fifth of a second longer.
  process.env.TSX_DISABLE_CACHE ??= '1';
  const { register } = await import('tsx/esm/api');
  register();
  const { main } = await import('./ddf.ts');
  process.exitCode = await main(commandLine);
}
