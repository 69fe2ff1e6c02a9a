import { DdfError } from '../errors.ts';
import { ERROR_NAMES } from './abi.ts';

/** An address in this process; 0n is NULL. */
export type Pointer = bigint;

/**
 * The system calls that sockets need and Node.js does not offer, as C declares them: -1 means that {@link Libc.errno} has the reason. Buffers may be given as typed
 * arrays, except to `pollAsync`, which runs on another thread while the engine may move on.
 */
export interface Libc {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Uint8Array, length: number): number;
  close(fd: number): number;
  setsockopt(fd: number, level: number, name: number, value: Uint8Array, length: number): number;
  getsockopt(fd: number, level: number, name: number, value: Uint8Array, length: Uint8Array): number;
  ioctl(fd: number, request: number, argument: Uint8Array): number;
  recv(fd: number, buffer: Uint8Array, length: number, flags: number): number;
  sendmmsg(fd: number, messages: Pointer, count: number, flags: number): number;
  recvmmsg(fd: number, messages: Pointer, count: number, flags: number, timeout: Pointer): number;
  /** Blocks this thread. */
  sleepUs(microseconds: number): void;
  eventfd(initial: number, flags: number): number;
  read(fd: number, buffer: Uint8Array, length: number): number;
  write(fd: number, buffer: Uint8Array, length: number): number;
  /** Maps a socket's ring, shared; the mapping goes when nothing refers to the buffer any more. */
  mapRing(fd: number, length: number): { readonly buffer: ArrayBuffer; readonly address: number } | undefined;
  /** Calls back with what poll(2) returned. */
  pollAsync(descriptors: Pointer, count: number, timeoutMs: number, done: (result: number) => void): void;
  /** Of the last call that failed. */
  errno(): number;
  /** Where the bytes of a buffer are. They stay there: backing stores do not move. */
  addressOf(buffer: ArrayBufferLike): number;
}

const PROT_READ_WRITE = 3;
const MAP_SHARED = 1;
const MAP_FAILED = 0xffff_ffff_ffff_ffffn;

let loaded: Promise<Libc> | undefined;

/** Loads the foreign-function library, once. Throws PORT_UNAVAILABLE where it or Linux is missing. */
export function loadLibc(): Promise<Libc> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<Libc> {
  if (process.platform !== 'linux' || !/64|^loong|^s390x$/.test(process.arch))
    throw new DdfError(
      'PORT_UNAVAILABLE',
      `Direct system calls need 64-bit Linux, this is ${process.platform}/${process.arch}`,
    );
  const { default: koffi } = await import('koffi').catch((cause: unknown) => {
    throw new DdfError('PORT_UNAVAILABLE', 'Direct system calls need the package koffi, which is not installed', {
      remedy: 'Install the optional packages: `npm ci --include=optional`.',
      cause,
    });
  });
  // The process itself: Node.js is linked with the C library, whichever the system has.
  const process_ = koffi.load(null);
  const mmap = process_.func('void *mmap(void *address, size_t length, int prot, int flags, int fd, int64_t offset)');
  const munmap = process_.func('int munmap(void *address, size_t length)');
  const poll = process_.func('int poll(void *descriptors, unsigned long count, int timeout)');
  // A view of memory that is gone would crash the process: only the garbage collector knows when there is none left.
  const unreferenced = new FinalizationRegistry<{ address: Pointer; length: number }>(({ address, length }) =>
    munmap(address, length),
  );
  return {
    socket: process_.func('int socket(int domain, int type, int protocol)'),
    bind: process_.func('int bind(int fd, void *address, uint32_t length)'),
    close: process_.func('int close(int fd)'),
    setsockopt: process_.func('int setsockopt(int fd, int level, int name, void *value, uint32_t length)'),
    getsockopt: process_.func('int getsockopt(int fd, int level, int name, void *value, void *length)'),
    ioctl: process_.func('int ioctl(int fd, unsigned long request, void *argument)'),
    recv: process_.func('int64_t recv(int fd, void *buffer, size_t length, int flags)'),
    sendmmsg: process_.func('int sendmmsg(int fd, void *messages, unsigned int count, int flags)'),
    recvmmsg: process_.func('int recvmmsg(int fd, void *messages, unsigned int count, int flags, void *timeout)'),
    sleepUs: process_.func('usleep', 'int', ['unsigned int']),
    eventfd: process_.func('int eventfd(unsigned int initial, int flags)'),
    read: process_.func('int64_t read(int fd, void *buffer, size_t length)'),
    write: process_.func('int64_t write(int fd, void *buffer, size_t length)'),
    mapRing(fd, length) {
      const address: Pointer = mmap(null, length, PROT_READ_WRITE, MAP_SHARED, fd, 0);
      if (address === MAP_FAILED) return undefined;
      const buffer = koffi.view(address, length);
      unreferenced.register(buffer, { address, length });
      return { buffer, address: Number(address) };
    },
    pollAsync(descriptors, count, timeoutMs, done) {
      poll.async(descriptors, count, timeoutMs, (_error: unknown, result: number) => done(result));
    },
    errno: () => koffi.errno(),
    addressOf: (buffer) => Number(koffi.address(buffer)),
  };
}

/** What the C library calls an error number, for messages. */
export function errorName(errno: number): string {
  return ERROR_NAMES[errno] ?? `errno ${errno}`;
}
