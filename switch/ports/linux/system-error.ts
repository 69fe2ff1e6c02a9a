import { DdfError } from '../../../base/errors.ts';
import { EACCES, EPERM } from '../../../base/linux/abi.ts';
import { errorName, type Libc } from '../../../base/linux/libc.ts';

/** The error for a call that has just failed while an interface was being opened. */
export function systemError(libc: Libc, what: string, where: string): DdfError {
  const errno = libc.errno();
  if (errno === EPERM || errno === EACCES)
    return new DdfError('PORT_UNAVAILABLE', `No permission to ${what}`, {
      where,
      remedy: 'Run as root, or give the process the capabilities CAP_NET_RAW and CAP_NET_ADMIN.',
    });
  return new DdfError('PORT_UNAVAILABLE', `The system refuses to ${what}: ${errorName(errno)}`, { where });
}
