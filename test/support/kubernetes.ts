// What the API of Kubernetes (v1.30: core/v1, apps/v1, networking.k8s.io/v1) knows of the kinds in
// scripts/deploy/kubernetes: which fields there are, which of them are required, and what they hold. Only the fields in
// use here are listed: look a new one up before you add it.

type Shape = RegExp | 'boolean' | 'count' | readonly [Shape] | { readonly [field: string]: Shape };

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const TEXT = /[^]/;
const QUANTITY = /^\d+(?:m|Ki|Mi|Gi|Ti)?$/;
const LABELS = { app: NAME };
const METADATA = { name: NAME };

const PROBE = {
  httpGet: { path: /^\//, port: NAME },
  'periodSeconds?': 'count', 'timeoutSeconds?': 'count', 'failureThreshold?': 'count', 'initialDelaySeconds?': 'count',
} as const;

const CONTAINER = {
  name: NAME,
  image: /^[a-z0-9.-]+(?:\/[a-z0-9._-]+)+@sha256:[0-9a-f]{64}$/,
  securityContext: {
    allowPrivilegeEscalation: 'boolean', readOnlyRootFilesystem: 'boolean', capabilities: { drop: [/^[A-Z_]+$/] },
  },
  env: [{ name: /^[A-Z][A-Z0-9_]*$/, value: TEXT }],
  ports: [{ name: NAME, containerPort: 'count' }],
  startupProbe: PROBE,
  readinessProbe: PROBE,
  livenessProbe: PROBE,
  resources: { requests: { cpu: QUANTITY, memory: QUANTITY }, limits: { memory: QUANTITY } },
  volumeMounts: [{ name: NAME, mountPath: /^\//, 'readOnly?': 'boolean' }],
} as const;

const POD = {
  automountServiceAccountToken: 'boolean',
  enableServiceLinks: 'boolean',
  terminationGracePeriodSeconds: 'count',
  securityContext: {
    runAsNonRoot: 'boolean', runAsUser: 'count', runAsGroup: 'count', fsGroup: 'count',
    fsGroupChangePolicy: /^(?:OnRootMismatch|Always)$/,
    seccompProfile: { type: /^(?:RuntimeDefault|Unconfined)$/ },
  },
  containers: [CONTAINER],
  volumes: [{
    name: NAME,
    'persistentVolumeClaim?': { claimName: NAME },
    'secret?': { secretName: NAME, defaultMode: 'count', 'optional?': 'boolean' },
  }],
} as const;

const KINDS: Readonly<Record<string, { readonly [field: string]: Shape }>> = {
  'v1 PersistentVolumeClaim': {
    spec: { accessModes: [/^ReadWriteOnce(?:Pod)?$/], resources: { requests: { storage: QUANTITY } } },
  },
  'apps/v1 Deployment': {
    spec: {
      replicas: 'count',
      strategy: { type: /^(?:Recreate|RollingUpdate)$/ },
      selector: { matchLabels: LABELS },
      template: { metadata: { labels: LABELS }, spec: POD },
    },
  },
  'v1 Service': { spec: { selector: LABELS, ports: [{ name: NAME, port: 'count', targetPort: NAME }] } },
  'networking.k8s.io/v1 NetworkPolicy': {
    spec: {
      podSelector: { matchLabels: LABELS },
      policyTypes: [/^(?:Ingress|Egress)$/],
      ingress: [{ ports: [{ port: NAME }] }],
      egress: [{ ports: [{ port: NAME }] }],
    },
  },
};

/** The paths of what the API would refuse, or would ignore. */
export function manifestFaults(value: unknown): string[] {
  const { apiVersion, kind } = (value ?? {}) as { apiVersion?: unknown; kind?: unknown };
  const shape = KINDS[`${String(apiVersion)} ${String(kind)}`];
  if (shape === undefined) return ['kind'];
  return faults(value, { apiVersion: TEXT, kind: TEXT, metadata: METADATA, ...shape }, '');
}

function faults(value: unknown, shape: Shape, path: string): string[] {
  if (shape instanceof RegExp) return typeof value === 'string' && shape.test(value) ? [] : [path];
  if (shape === 'boolean') return typeof value === 'boolean' ? [] : [path];
  if (shape === 'count') return Number.isSafeInteger(value) && Number(value) >= 0 ? [] : [path];
  if (Array.isArray(shape)) {
    const [ofEach] = shape as readonly [Shape];
    return Array.isArray(value) ? value.flatMap((entry, index) => faults(entry, ofEach, `${path}[${index}]`)) : [path];
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [path];
  const fields = new Map(Object.entries(shape as { readonly [field: string]: Shape }));
  const known = [...fields.keys()].map((field) => field.replace('?', ''));
  const unknown = Object.keys(value).filter((field) => !known.includes(field)).map((field) => `${path}.${field}`);
  return [...unknown, ...[...fields].flatMap(([field, ofField]) => {
    const name = field.replace('?', '');
    if (field !== name && !(name in value)) return [];
    return faults((value as Record<string, unknown>)[name], ofField, `${path}.${name}`);
  })];
}
