// What is used of node:http, got in the one way that loads no more than that: an import statement reads every export of
// a module of Node, and WebSocket among those of this one brings fetch and HTTP/2 with it, 30 ms and several MB of each
// start that nothing here uses. Types are imported from node:http as ever.

import { createRequire } from 'node:module';

const http = createRequire(import.meta.url)('node:http') as typeof import('node:http');

export const { createServer, request, STATUS_CODES } = http;
