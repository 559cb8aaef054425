// What in-toto's Statement v1 and SLSA's provenance v1 ask of a statement (in-toto/attestation, spec/v1; slsa.dev,
// provenance/v1): which members are required, and the types of these and of the optional ones.

type Value = unknown;
type Members = Readonly<Record<string, Value>>;

/** A check of one member: its faults, each the path of what is wrong. */
type Check = (value: Value, path: string) => string[];

const ONE_OF_DIGESTS: Readonly<Record<string, RegExp>> = {
  sha256: /^[0-9a-f]{64}$/,
  sha512: /^[0-9a-f]{128}$/,
  gitCommit: /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/,
};

/** The paths of what is wrong with the statement; those in the predicate begin below its two halves. */
export function statementFaults(statement: Value): string[] {
  return object({
    _type: exactly('https://in-toto.io/Statement/v1'),
    subject: listOf(object({ name: text, digest }), 1),
    predicateType: exactly('https://slsa.dev/provenance/v1'),
    predicate: object({
      buildDefinition: object({
        buildType: uri,
        // Required, and an empty object counts as missing.
        externalParameters: filled,
      }, { internalParameters: filled, resolvedDependencies: listOf(resource, 0) }),
      runDetails: object({ builder: object({ id: uri }, { builderDependencies: listOf(resource, 0), version: filled }) }, {
        metadata: object({}, { invocationId: text, startedOn: moment, finishedOn: moment }),
        byproducts: listOf(resource, 0),
      }),
    }),
  })(statement, '').map((path) => path.replace(/^\.(?:predicate\.(?:buildDefinition|runDetails)\.)?/, ''));
}

const unless = (isRight: boolean, path: string): string[] => (isRight ? [] : [path]);

const text: Check = (value, path) => unless(typeof value === 'string' && value !== '', path);
const exactly = (expected: string): Check => (value, path) => unless(value === expected, path);

/** TypeURI and ResourceURI: absolute, by RFC 3986. */
const uri: Check = (value, path) => unless(typeof value === 'string' && /^[a-z][a-z0-9+.-]*:[^\s]+$/.test(value), path);

/** RFC 3339, in UTC. */
const moment: Check = (value, path) => (
  unless(typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/.test(value), path)
);

const filled: Check = (value, path) => unless(isObject(value) && Object.keys(value).length > 0, path);

const digest: Check = (value, path) => unless(
  isObject(value) && Object.keys(value).length > 0 &&
    Object.entries(value).every(([name, hex]) => typeof hex === 'string' && ONE_OF_DIGESTS[name]?.test(hex) === true),
  path,
);

/** ResourceDescriptor: any member may be missing, but not all three that say which resource it is. */
const resource: Check = (value, path) => {
  if (!isObject(value) || !['uri', 'digest', 'content'].some((name) => Object.keys(value[name] ?? {}).length > 0)) return [path];
  return object({}, {
    name: text, uri, digest, content: text, downloadLocation: uri, mediaType: text, annotations: filled,
  })(value, path);
};

function isObject(value: Value): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function listOf(check: Check, least: number): Check {
  return (value, path) => {
    if (!Array.isArray(value) || value.length < least) return [path];
    return value.flatMap((item: Value, index) => check(item, `${path}[${index}]`));
  };
}

/** Refuses a member that neither list names, since no specification names it. */
function object(required: Readonly<Record<string, Check>>, optional: Readonly<Record<string, Check>> = {}): Check {
  return (value, path) => {
    if (!isObject(value)) return [path];
    const strange = Object.keys(value).filter((name) => !(name in required) && !(name in optional));
    return [
      ...strange.map((name) => `${path}.${name}`),
      ...Object.entries(required).flatMap(([name, check]) => check(value[name], `${path}.${name}`)),
      ...Object.entries(optional).flatMap(([name, check]) => (name in value ? check(value[name], `${path}.${name}`) : [])),
    ];
  };
}
