// The Prometheus text format, line by line.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { headerLines, sampleLine } from '../../src/ops/metrics.ts';

test('headerLines: help has backslashes and newlines escaped, and quotes as they are', () => {
  const lines = headerLines({ name: 'x_total', type: 'counter', help: 'a\\b\n"c"' });
  assert.equal(lines, '# HELP x_total a\\\\b\\n"c"\n# TYPE x_total counter\n');
});

test('sampleLine: without labels there are no braces', () => {
  assert.equal(sampleLine('x', {}, 0), 'x 0\n');
});

test('sampleLine: labels in their order, with quotes, backslashes and newlines escaped', () => {
  assert.equal(sampleLine('x', { b: '"\\\n', a: '{}=,' }, 1.5), 'x{b="\\"\\\\\\n",a="{}=,"} 1.5\n');
});

test('sampleLine: numbers are what Go and JavaScript both read', () => {
  for (const value of [0, -1, 0.001, 1e-9, 2 ** 53, 1e21]) {
    assert.equal(Number(sampleLine('x', {}, value).slice(2)), value);
  }
});
