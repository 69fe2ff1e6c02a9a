import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { DdfError } from '../base/errors.ts';
import type { TlsIdentity } from '../base/tls.ts';

export interface RawTlsOptions {
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsCa?: string;
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs;

/**
 * What --tls-cert, --tls-key and --tls-ca name, read and checked, so that a wrong file is said here and not by a connection that fails later.
 * @returns undefined without any of the three: no TLS
 * @throws DdfError INVALID_OPTION for a combination that makes no sense, INVALID_FILE with the option, the file and why
 */
export async function readTlsFiles(raw: RawTlsOptions, side: 'server' | 'client'): Promise<TlsIdentity | undefined> {
  const { tlsCert, tlsKey, tlsCa } = raw;
  if (tlsCert === undefined && tlsKey === undefined && tlsCa === undefined) return undefined;
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw new DdfError('INVALID_OPTION', `--tls-${tlsCert === undefined ? 'key' : 'cert'} needs its other half`, {
      remedy: 'Give --tls-cert and --tls-key together: a certificate and the private key that belongs to it.',
    });
  if (side === 'server' && tlsCert === undefined)
    throw new DdfError('INVALID_OPTION', '--tls-ca alone does not make a TLS server', {
      remedy: 'Give it a certificate: --tls-cert and --tls-key.',
    });
  if (side === 'client' && tlsCa === undefined)
    throw new DdfError('INVALID_OPTION', '--tls-cert needs --tls-ca', {
      remedy: 'Name the file with the authority that signed the certificates of the switches.',
    });
  const authorities = tlsCa === undefined ? undefined : await readFileOf('--tls-ca', tlsCa);
  if (authorities !== undefined) checkCertificates(authorities, '--tls-ca', tlsCa!);
  if (tlsCert === undefined || tlsKey === undefined) return { authorities: authorities! };
  const chain = await readFileOf('--tls-cert', tlsCert);
  const [own] = checkCertificates(chain, '--tls-cert', tlsCert);
  const privateKey = await readFileOf('--tls-key', tlsKey);
  if (!own!.checkPrivateKey(parseKey(privateKey, tlsKey)))
    throw invalid('--tls-key', tlsKey, `is not the private key of the certificate in ${tlsCert}`);
  return { certificate: { chain, privateKey }, ...(authorities === undefined ? {} : { authorities }) };
}

async function readFileOf(option: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw invalid(option, file, `cannot be read: ${(cause as Error).message}`, cause);
  }
}

function checkCertificates(pem: Buffer, option: string, file: string): X509Certificate[] {
  const texts = pem.toString('latin1').match(PEM_CERTIFICATE);
  if (texts === null) throw invalid(option, file, 'has no certificate in PEM (-----BEGIN CERTIFICATE-----)');
  return texts.map((text) => {
    let certificate: X509Certificate;
    try {
      certificate = new X509Certificate(text);
    } catch (cause) {
      throw invalid(option, file, `has a certificate that cannot be parsed: ${(cause as Error).message}`, cause);
    }
    const subject = certificate.subject.replaceAll('\n', ', ');
    if (Date.parse(certificate.validTo) < Date.now())
      throw invalid(option, file, `has a certificate (${subject}) that expired on ${certificate.validTo}`);
    if (Date.parse(certificate.validFrom) > Date.now())
      throw invalid(option, file, `has a certificate (${subject}) that is not valid before ${certificate.validFrom}`);
    return certificate;
  });
}

function parseKey(pem: Buffer, file: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    const why = /^-----BEGIN ENCRYPTED|^Proc-Type: .*ENCRYPTED/m.test(pem.toString('latin1'))
      ? 'is encrypted: give a key without a passphrase'
      : 'has no private key in PEM';
    throw invalid('--tls-key', file, why, cause);
  }
}

function invalid(option: string, file: string, why: string, cause?: unknown): DdfError {
  return new DdfError('INVALID_FILE', `${option} ${file} ${why}`, cause === undefined ? {} : { cause });
}
