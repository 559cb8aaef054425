// Only what is used of node:http, by require: an import statement reads every export of a module of Node, and reading
// WebSocket loads fetch and HTTP/2: 30 ms and several MB at each start. Types are imported from node:http as usual.

import { createRequire } from 'node:module';

const http = createRequire(import.meta.url)('node:http') as typeof import('node:http');

export const { createServer, request, STATUS_CODES } = http;
