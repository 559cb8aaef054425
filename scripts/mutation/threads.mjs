// Loaded first where NODE_V8_COVERAGE is set, so that threads with an empty environment, as the service starts them,
// write coverage too. They get two variables for that, which are removed before their own code begins.

import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';

const { NODE_OPTIONS, NODE_V8_COVERAGE } = process.env;

if (threads.isMainThread) {
  threads.Worker = class extends threads.Worker {
    constructor(file, options = {}) {
      const env = options.env && { ...options.env, NODE_OPTIONS, NODE_V8_COVERAGE };
      super(file, { ...options, env });
    }
  };
  syncBuiltinESMExports();
} else {
  delete process.env.NODE_OPTIONS;
  delete process.env.NODE_V8_COVERAGE;
}
