// The Prometheus text format, line by line.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '../../src/http/routes.ts';
import { headerLines, METRICS, sampleLine } from '../../src/ops/metrics.ts';

test('METRICS: no help, label or route has a character that the format would have escaped', () => {
  const metrics = Object.values(METRICS);
  const texts = metrics.flatMap(({ help, label, values }) => [help, label, ...values]);
  for (const text of [...texts, ...ROUTES.map(({ path }) => path)]) assert.doesNotMatch(text, /[\\\n"]/);
});

test('headerLines: help and type, a line each', () => {
  const lines = headerLines({ name: 'x_total', type: 'counter', help: 'a b' });
  assert.equal(lines, '# HELP x_total a b\n# TYPE x_total counter\n');
});

test('sampleLine: without labels there are no braces', () => {
  assert.equal(sampleLine('x', {}, 0), 'x 0\n');
});

test('sampleLine: labels in their order', () => {
  assert.equal(sampleLine('x', { b: '/{id}', a: '{}=,' }, 1.5), 'x{b="/{id}",a="{}=,"} 1.5\n');
});

test('sampleLine: numbers are what Go and JavaScript both read', () => {
  for (const value of [0, -1, 0.001, 1e-9, 2 ** 53, 1e21]) {
    assert.equal(Number(sampleLine('x', {}, value).slice(2)), value);
  }
});
