import { describe, it } from 'vitest';
import { checksByRow, titleOf } from './rows.ts';
import { SERVER_CHECKS } from './server/checks.ts';
import { IS_FOREIGN, openContext } from './server/target.ts';

describe(`P4Runtime conformance of ${IS_FOREIGN ? 'the given server' : 'the embedded switch'}`, () => {
  for (const [row, check] of checksByRow('server', SERVER_CHECKS))
    it(titleOf(row), async () => {
      const context = await openContext();
      try {
        await check(context);
      } finally {
        await context.close();
      }
    });
});
