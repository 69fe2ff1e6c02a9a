import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { VirtualScheduler } from '../../base/clock.ts';
import { createLogger } from '../../base/logger.ts';
import { createRandom } from '../../base/random.ts';
import { SwitchConnection } from '../../controller/p4runtime/connection.ts';
import { type RawTlsOptions, readTlsFiles } from '../../scripts/tls-files.ts';
import { Device } from '../../switch/device.ts';
import { startP4RuntimeServer } from '../../switch/server/p4runtime-server.ts';

const reason = whyNoCertificates();
const title = `TLS between controller and switches${reason === undefined ? '' : ` (${reason})`}`;

function whyNoCertificates(): string | undefined {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return undefined;
  } catch {
    return 'needs openssl';
  }
}

describe.skipIf(reason !== undefined)(title, { timeout: 60_000 }, () => {
  let directory: string;
  const file = (name: string): string => join(directory, name);
  const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const makeAuthority = (name: string) =>
    openssl(
      'req',
      '-x509',
      ...key,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.pem`,
      '-days',
      '2',
      '-subj',
      `/CN=${name}`,
    );
  const makeCertificate = (name: string, authority: string, host: string, days = '2') => {
    openssl('req', ...key, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
    writeFileSync(file(`${name}.ext`), `subjectAltName=${host}\n`);
    const signer = ['-CA', `${authority}.pem`, '-CAkey', `${authority}.key`, '-CAcreateserial'];
    openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      ...signer,
      '-days',
      days,
      '-extfile',
      `${name}.ext`,
      '-out',
      `${name}.pem`,
    );
  };
  const own = (name: string): RawTlsOptions => ({ tlsCert: file(`${name}.pem`), tlsKey: file(`${name}.key`) });
  const trusts = (name: string): RawTlsOptions => ({ tlsCa: file(`${name}.pem`) });

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'ddf-tls-'));
    makeAuthority('ca');
    makeAuthority('other-ca');
    makeCertificate('leaf1', 'ca', 'IP:127.0.0.1,DNS:localhost');
    makeCertificate('elsewhere', 'ca', 'DNS:leaf9.example');
    makeCertificate('controller', 'ca', 'DNS:controller.example');
    makeCertificate('stranger', 'other-ca', 'DNS:controller.example');
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const cleanUps: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  });

  /** Why the controller is not primary of the switch, if it is not. */
  async function outcome(
    server: RawTlsOptions,
    client: RawTlsOptions,
    host = '127.0.0.1',
  ): Promise<string | undefined> {
    const scheduler = new VirtualScheduler();
    const tls = await readTlsFiles(server, 'server');
    const running = await startP4RuntimeServer({
      devices: [new Device({ deviceId: 1n, cpuPort: 510, clock: scheduler, random: createRandom(1) })],
      address: '127.0.0.1:0',
      scheduler,
      logger: createLogger('silent'),
      ...(tls === undefined ? {} : { tls }),
    });
    cleanUps.push(() => running.stop());
    const clientTls = await readTlsFiles(client, 'client');
    const connection = new SwitchConnection({
      name: 'leaf1',
      address: `${host}:${running.port}`,
      deviceId: 1,
      electionId: { high: 0n, low: 1n },
      reconnectFirstMs: 20,
      reconnectMaximumMs: 20,
      ...(clientTls === undefined ? {} : { tls: clientTls }),
    });
    cleanUps.push(() => connection.close());
    return new Promise((resolve) => {
      cleanUps.push(
        connection.onState((state) => {
          if (state === 'primary') resolve(undefined);
          if (state === 'down') resolve(connection.lastError!.describe());
        }),
      );
      connection.start();
    });
  }

  it('lets them speak when the certificate is right, by address and by name', async () => {
    expect(await outcome(own('leaf1'), trusts('ca'))).toBeUndefined();
    expect(await outcome(own('leaf1'), trusts('ca'), 'localhost')).toBeUndefined();
  });

  it('lets in only controllers with a certificate of the right authority, when it is mutual', async () => {
    const server = { ...own('leaf1'), ...trusts('ca') };
    expect(await outcome(server, { ...own('controller'), ...trusts('ca') })).toBeUndefined();
    expect(await outcome(server, trusts('ca'))).toMatch(/UNAVAILABLE.*both ends trust/);
    expect(await outcome(server, { ...own('stranger'), ...trusts('ca') })).toMatch(/UNAVAILABLE/);
  });

  it.each([
    ['of another authority', () => own('leaf1'), () => trusts('other-ca'), /(unable to|verify|certificate)/],
    ['for another host', () => own('elsewhere'), () => trusts('ca'), /(altnames|127\.0\.0\.1 is not in)/],
    ['that is not there', () => ({}), () => trusts('ca'), /UNAVAILABLE/],
    ['that was not asked for', () => own('leaf1'), () => ({}), /UNAVAILABLE.*without TLS/],
  ])('does not connect to a switch with a certificate %s, and says why', async (_what, server, client, why) => {
    const text = await outcome(server(), client());
    expect(text).toMatch(why);
    expect(text).toMatch(/switch leaf1 at 127\.0\.0\.1:\d+/);
  });

  it.each<[string, () => RawTlsOptions, 'server' | 'client', RegExp]>([
    ['a key without a certificate', () => ({ tlsKey: file('leaf1.key') }), 'server', /^INVALID_OPTION --tls-key needs/],
    ['an authority without a certificate', () => trusts('ca'), 'server', /^INVALID_OPTION --tls-ca alone/],
    ['a client without an authority', () => own('controller'), 'client', /^INVALID_OPTION --tls-cert needs --tls-ca/],
    [
      'a file that is not there',
      () => ({ tlsCa: file('none.pem') }),
      'client',
      /^INVALID_FILE --tls-ca .*none\.pem cannot be read: ENOENT/,
    ],
    [
      'a key for a certificate',
      () => ({ ...own('leaf1'), tlsCert: file('leaf1.key') }),
      'server',
      /^INVALID_FILE --tls-cert .*leaf1\.key has no certificate in PEM/,
    ],
    [
      'a certificate for a key',
      () => ({ ...own('leaf1'), tlsKey: file('leaf1.pem') }),
      'server',
      /^INVALID_FILE --tls-key .*leaf1\.pem has no private key in PEM/,
    ],
    [
      "another certificate's key",
      () => ({ ...own('leaf1'), tlsKey: file('controller.key') }),
      'server',
      /^INVALID_FILE --tls-key .*controller\.key is not the private key of the certificate in .*leaf1\.pem/,
    ],
  ])('refuses %s with the file and why', async (_what, options, side, message) => {
    await expect(
      readTlsFiles(options(), side).catch(({ code, message }) => Promise.reject(new Error(`${code} ${message}`))),
    ).rejects.toThrow(message);
  });

  it('refuses certificates that are broken or out of their time, and keys with a passphrase', async () => {
    writeFileSync(file('broken.pem'), '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n');
    await expect(readTlsFiles({ tlsCa: file('broken.pem') }, 'client')).rejects.toThrow(/cannot be parsed/);
    makeCertificate('expired', 'ca', 'IP:127.0.0.1', '-1');
    await expect(readTlsFiles(own('expired'), 'server')).rejects.toThrow(
      /\(CN=expired\) that (expired on|is not valid before)/,
    );
    openssl('pkcs8', '-topk8', '-in', 'leaf1.key', '-out', 'secret.key', '-passout', 'pass:secret');
    await expect(readTlsFiles({ ...own('leaf1'), tlsKey: file('secret.key') }, 'server')).rejects.toThrow(
      /is encrypted/,
    );
  });
});
