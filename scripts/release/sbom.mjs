// The bill of materials, CycloneDX 1.6 in JSON (https://cyclonedx.org/docs/1.6/json/): every compiled file with its
// hash, that it needs nothing but Node, and which packages are needed for development. It does not list what those
// packages need in turn: package-lock.json does.

import { hash } from 'node:crypto';

/** Made from the compiled files, package.json and package-lock.json; its id follows from its content. */
export function billOfMaterials({ card, lock, dist, seconds }) {
  // Not pkg:npm, since a package of that name in a registry would be somebody else's.
  const product = `pkg:generic/${card.name}@${card.version}`;
  const runtime = 'runtime:node';
  const content = {
    metadata: {
      timestamp: new Date(seconds * 1000).toISOString(),
      component: {
        type: 'application',
        'bom-ref': product,
        name: card.name,
        version: card.version,
        description: card.description,
        licenses: [{ license: { id: card.license } }],
        purl: product,
        components: [...dist].map(([path, bytes]) => fileComponent(path, bytes)),
      },
    },
    components: [
      {
        type: 'platform',
        'bom-ref': runtime,
        name: 'Node.js',
        description: `Runs it: any version ${card.engines.node}. Not in this list, nor is what pasted-runtime or the container has.`,
        scope: 'required',
      },
      ...Object.keys(card.devDependencies).sort().map((name) => developmentComponent(name, lock)),
    ],
    dependencies: [{ ref: product, dependsOn: [runtime] }, { ref: runtime, dependsOn: [] }],
    compositions: [{ aggregate: 'complete', dependencies: [product] }],
  };
  const serialNumber = `urn:uuid:${contentUuid(JSON.stringify(content))}`;
  const $schema = 'http://cyclonedx.org/schema/bom-1.6.schema.json';
  const head = { $schema, bomFormat: 'CycloneDX', specVersion: '1.6', serialNumber, version: 1 };
  return `${JSON.stringify({ ...head, ...content }, undefined, 2)}\n`;
}

function fileComponent(path, content) {
  return { type: 'file', name: `dist/${path}`, hashes: [{ alg: 'SHA-256', content: hash('sha256', content) }] };
}

function developmentComponent(name, lock) {
  const { version, integrity, license } = lock.packages[`node_modules/${name}`];
  const purl = packageUrl(name, version);
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    description: 'For development and tests only.',
    scope: 'excluded',
    hashes: [{ alg: 'SHA-512', content: hexDigests(integrity).sha512 }],
    licenses: [{ license: { id: license } }],
    purl,
  };
}

/** A purl, which names a package but no place to get it from. */
export function packageUrl(name, version) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

/** Digests by algorithm, from what package-lock.json calls the integrity: `sha512-` and base64. */
export function hexDigests(integrity) {
  const [algorithm, base64] = integrity.split(/-(.*)/);
  return { [algorithm]: Buffer.from(base64, 'base64').toString('hex') };
}

/** RFC 9562, 5.8: version 8, whose bits an application may choose; here they come from a SHA-256. */
function contentUuid(text) {
  const bytes = hash('sha256', text, 'buffer').subarray(0, 16);
  bytes[6] = (bytes[6] & 0x0f) | 0x80;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
