// What is used of node:http, and no more: an import statement reads every export of a module of Node, and WebSocket
// among them loads fetch and HTTP/2, 30 ms and several MB of each start. Types are imported from node:http as ever.

import { createRequire } from 'node:module';

const http = createRequire(import.meta.url)('node:http') as typeof import('node:http');

export const { createServer, request, STATUS_CODES } = http;
