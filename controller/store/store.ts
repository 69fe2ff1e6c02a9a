import Database from 'better-sqlite3';
import { DdfError } from '../../base/errors.ts';
import { MIGRATIONS } from './schema.ts';

/** The controller's database: one file, one writer. */
export type Store = Database.Database;

/**
 * Opens or makes the database and brings it to the present schema.
 *
 * Write-ahead log with `synchronous = FULL`: when a call that writes has returned, its facts survive a crash of the machine.
 * @param path a file, or `:memory:`
 * @throws DdfError INVALID_FILE: not a database, not readable, or written by a newer release; CONFLICT: another controller has it open
 */
export function openStore(path: string): Store {
  let store: Store | undefined;
  try {
    store = new Database(path, { timeout: 2000 });
    store.pragma('journal_mode = WAL');
    store.pragma('synchronous = FULL');
    store.pragma('foreign_keys = ON');
    migrate(store, path);
    return store;
  } catch (error) {
    store?.close();
    throw explain(error, path);
  }
}

function migrate(store: Store, path: string): void {
  store
    .transaction(() => {
      const version = store.pragma('user_version', { simple: true }) as number;
      if (version > MIGRATIONS.length)
        throw new DdfError(
          'INVALID_FILE',
          `the database has schema ${version}, this release knows ${MIGRATIONS.length}`,
          {
            where: path,
            remedy: 'Start the release that wrote it, or give another database path.',
          },
        );
      for (const step of MIGRATIONS.slice(version)) store.exec(step);
      store.pragma(`user_version = ${MIGRATIONS.length}`);
    })
    .immediate();
}

function explain(error: unknown, path: string): DdfError {
  if (error instanceof DdfError) return error;
  if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY'))
    return new DdfError('CONFLICT', 'another process is writing to the database', {
      where: path,
      remedy: 'Stop the other controller, or give this one its own database path.',
      recoverable: true,
      cause: error,
    });
  return new DdfError(
    'INVALID_FILE',
    `the database cannot be opened: ${error instanceof Error ? error.message : error}`,
    {
      where: path,
      remedy:
        'Give the path of a database that a controller wrote, or of a file that does not exist in a writable directory.',
      cause: error,
    },
  );
}
