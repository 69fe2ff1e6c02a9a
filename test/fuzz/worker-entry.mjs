// Worker threads get no TypeScript loader from their parent on Node.js 20: this one registers it, then becomes worker.ts.
import { register } from 'tsx/esm/api';

register();
await import('./worker.ts');
