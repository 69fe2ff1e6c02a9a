import { describe, it } from 'vitest';
import { checksByRow, markRow, titleOf } from './rows.ts';
import { SERVER_CHECKS } from './server/checks.ts';
import { IS_FOREIGN, openContext } from './server/target.ts';

describe(`P4Runtime conformance of ${IS_FOREIGN ? 'the given server' : 'the embedded switch'}`, () => {
  for (const [row, check] of checksByRow('server', SERVER_CHECKS)) {
    if (check === undefined) it.todo(titleOf(row));
    else
      it(titleOf(row), async ({ task }) => {
        markRow(task, row, 'server');
        const context = await openContext();
        try {
          await check(context);
        } finally {
          await context.close();
        }
      });
  }
});
