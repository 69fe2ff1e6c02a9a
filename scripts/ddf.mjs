#!/usr/bin/env node
// The `ddf` command.
import { runDdf } from './run-ddf.mjs';

await runDdf(process.argv.slice(2));
