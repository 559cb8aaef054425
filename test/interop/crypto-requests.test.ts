// Certification requests as other programs make them: taken for P-384, refused with a reason otherwise.

import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { decodePem, encodePem, readCertificationRequest } from '../../src/authority/keys.ts';
import { Refusal } from '../../src/core/refusals.ts';
import { isInstalled, run, temporaryFolder } from '../support/programs.ts';

const P384 = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384'];

/** Runs `openssl req -new` with a key without a password and gives the request; key.pem is left in the folder. */
function request(folder: string, ...args: readonly string[]): string {
  const { status, stdout, output } = run('openssl', ['req', '-new', '-subj', '/CN=x', ...args], folder);
  assert.equal(status, 0, output);
  return stdout;
}

function newKey(...args: readonly string[]): readonly string[] {
  return [...args, '-nodes', '-keyout', 'key.pem'];
}

function publicKeyOf(folder: string): Uint8Array {
  return createPublicKey(readFileSync(join(folder, 'key.pem'))).export({ type: 'spki', format: 'der' });
}

function refuses(pem: string, message: RegExp): void {
  assert.throws(() => readCertificationRequest(pem), (error) => (
    error instanceof Refusal && error.refusal === 'csrInvalid' && message.test(String(error.fields['hint']))
  ));
}

test('openssl req: a P-384 request is taken, with any of the usual digests, labels and extensions', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  for (const args of [
    [],
    ['-sha256'],
    ['-sha384'],
    ['-sha512'],
    ['-newhdr'],
    ['-addext', 'subjectAltName=DNS:a.example,IP:127.0.0.1', '-addext', 'basicConstraints=critical,CA:TRUE'],
    ['-subj', '/C=DE/O=\u00d6/CN=a@b_c*d/emailAddress=a@example.org', '-utf8'],
  ]) {
    const pem = request(folder, ...newKey(...P384), ...args);
    assert.deepEqual(Buffer.from(readCertificationRequest(pem)), Buffer.from(publicKeyOf(folder)));
  }
});

test('openssl req: several attributes are in the canonical order', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  const config = [
    '[req]', 'distinguished_name=dn', 'attributes=at', 'req_extensions=ex', 'prompt=no', '[dn]', 'CN=x',
    '[at]', 'challengePassword=abcd1234', 'unstructuredName=zzzz', '[ex]', 'keyUsage=digitalSignature', '',
  ];
  writeFileSync(join(folder, 'config'), config.join('\n'));
  assert.equal(readCertificationRequest(request(folder, ...newKey(...P384), '-config', 'config')).length, 120);
});

test('openssl req: other keys are refused', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const folder = temporaryFolder(t);
  for (const args of [
    ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
    ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-521'],
    [...P384, '-pkeyopt', 'ec_param_enc:explicit'],
    ['-newkey', 'rsa:2048'],
    ['-newkey', 'ed25519'],
  ]) {
    refuses(request(folder, ...newKey(...args)), /EC key on P-384 \(secp384r1\)/);
  }
});

test('openssl req: a tampered signature, a tampered subject, trailing bytes and text around are refused', (t) => {
  if (!isInstalled(t, 'openssl')) return;
  const pem = request(temporaryFolder(t), ...newKey(...P384));
  const der = decodePem(pem, 'CERTIFICATE REQUEST');
  assert.ok(der !== undefined);
  const tampered = (at: number): string =>
    encodePem('CERTIFICATE REQUEST', Uint8Array.from(der, (octet, i) => (i === at ? octet ^ 0x01 : octet)));
  refuses(tampered(der.length - 1), /signature does not match/);
  const subject = Buffer.from(der).indexOf(Buffer.from('0c0178', 'hex')) + 2;
  assert.ok(subject > 2);
  refuses(tampered(subject), /signature does not match/);
  refuses(encodePem('CERTIFICATE REQUEST', Buffer.concat([der, Uint8Array.of(0)])), /canonical DER/);
  refuses(`Certificate Request:\n${pem}`, /one PEM block/);
});

test('certtool --generate-request: a P-384 request of GnuTLS is taken', (t) => {
  if (!isInstalled(t, 'certtool')) return;
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'template'), 'cn = "x"\n');
  const key = ['--generate-privkey', '--key-type', 'ecdsa', '--curve', 'secp384r1', '--outfile', 'key.pem'];
  run('certtool', key, folder);
  const from = ['--load-privkey', 'key.pem', '--template', 'template'];
  const { stdout } = run('certtool', ['--generate-request', ...from], folder);
  const pem = stdout.slice(stdout.indexOf('-----BEGIN'));
  assert.equal(readCertificationRequest(pem).length, 120);
});

test('keytool -certreq: a P-384 request of Java is taken', (t) => {
  if (!isInstalled(t, 'keytool')) return;
  const folder = temporaryFolder(t);
  const store = ['-keystore', 'store', '-storepass', 'changeit', '-alias', 'a'];
  const key = ['-keyalg', 'EC', '-groupname', 'secp384r1', '-dname', 'CN=x'];
  run('keytool', ['-genkeypair', ...key, ...store], folder);
  const { stdout } = run('keytool', ['-certreq', ...store], folder);
  assert.equal(readCertificationRequest(stdout).length, 120);
});
