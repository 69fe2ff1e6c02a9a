/**
 * Numbers of Linux on 64-bit machines that more than one part uses (sys/socket.h, asm-generic/socket.h, poll.h, errno.h).
 * Integers are in the machine's byte order, which is also that of typed arrays.
 */
export const AF_INET = 2;
export const SOCK_DGRAM = 2;
export const SOCK_CLOEXEC = 0x80000;
export const SOCK_NONBLOCK = 0x800;
export const MSG_TRUNC = 0x20;
export const MSG_DONTWAIT = 0x40;
export const EFD_CLOEXEC_NONBLOCK = SOCK_CLOEXEC | SOCK_NONBLOCK;

export const SOL_SOCKET = 1;
export const SO_ERROR = 4;
export const SO_SNDBUF = 7;
export const SO_RCVBUF = 8;
export const SO_SNDBUFFORCE = 32;
export const SO_RCVBUFFORCE = 33;
export const SO_MEMINFO = 55;
/** Words of what SO_MEMINFO tells, and which of them has the datagrams that found no room (linux/sock_diag.h). */
export const MEMINFO_WORDS = 9;
export const MEMINFO_DROPS_WORD = 8;

/** linux/udp.h */
export const SOL_UDP = 17;
export const UDP_SEGMENT = 103;
export const UDP_GRO = 104;

export const POLLIN = 1;

export const EPERM = 1;
export const EINTR = 4;
export const EIO = 5;
export const EAGAIN = 11;
export const EACCES = 13;
export const EINVAL = 22;
export const EMSGSIZE = 90;
export const EADDRINUSE = 98;
export const ENOBUFS = 105;

export const ERROR_NAMES: Readonly<Record<number, string>> = {
  1: 'EPERM',
  6: 'ENXIO',
  9: 'EBADF',
  11: 'EAGAIN',
  12: 'ENOMEM',
  13: 'EACCES',
  16: 'EBUSY',
  19: 'ENODEV',
  22: 'EINVAL',
  23: 'ENFILE',
  24: 'EMFILE',
  92: 'ENOPROTOOPT',
  95: 'EOPNOTSUPP',
  97: 'EAFNOSUPPORT',
  98: 'EADDRINUSE',
  99: 'EADDRNOTAVAIL',
  100: 'ENETDOWN',
  105: 'ENOBUFS',
};
