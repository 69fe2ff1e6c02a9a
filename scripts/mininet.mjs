// `npm run mininet`: the main job in Mininet. The same as `ddf mininet`.
import { runDdf } from './run-ddf.mjs';

await runDdf(['mininet', ...process.argv.slice(2)]);
