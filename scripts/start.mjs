// `npm start`: the main job on a machine with nothing but Node.js and npm. The same as `ddf up`.
import { runDdf } from './run-ddf.mjs';

await runDdf(['up', ...process.argv.slice(2)]);
