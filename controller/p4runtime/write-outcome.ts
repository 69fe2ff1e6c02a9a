import type { ServiceError } from '@grpc/grpc-js';
import type { P4Error, Status, Update } from '../../wire/p4runtime/messages.ts';
import { messageCodec, unpackAny } from '../../wire/proto.ts';

const statusCodec = messageCodec<Status>('google.rpc.Status');
const errorCodec = messageCodec<P4Error>('p4.v1.Error');

/** One update of a batch that the switch refused. The others of the batch were applied. */
export interface UpdateFailure {
  readonly update: Update;
  /** A canonical gRPC code: 3 INVALID_ARGUMENT, 5 NOT_FOUND, 6 ALREADY_EXISTS, 8 RESOURCE_EXHAUSTED ... */
  readonly code: number;
  readonly message: string;
}

/**
 * What the details of a failed Write say about its updates (P4Runtime 1.5, "Error reporting for Write"): one p4.v1.Error for each, in order.
 *
 * @returns the refused ones, or undefined when the details are missing, broken, of another number than the updates, or deny every failure:
 *   then nobody knows what was applied, and it has to be read back
 */
export function decodeUpdateFailures(error: ServiceError, updates: readonly Update[]): UpdateFailure[] | undefined {
  const [bytes] = error.metadata.get('grpc-status-details-bin');
  if (!(bytes instanceof Uint8Array)) return undefined;
  try {
    const { details } = statusCodec.decode(bytes);
    if (details.length !== updates.length) return undefined;
    const failures: UpdateFailure[] = [];
    for (const [index, detail] of details.entries()) {
      const problem = unpackAny(errorCodec, detail);
      if (problem === undefined) return undefined;
      if (problem.canonicalCode !== 0)
        failures.push({ update: updates[index]!, code: problem.canonicalCode, message: problem.message });
    }
    return failures.length === 0 ? undefined : failures;
  } catch {
    // Details that cannot be decoded say as little as none.
    return undefined;
  }
}
