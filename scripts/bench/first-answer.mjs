// The floor of starting: a bare node:http server on the port that is its argument.

import http from 'node:http';

http.createServer((_request, response) => {
  response.writeHead(200, { 'Content-Length': '2' });
  response.end('ok');
}).listen(Number(process.argv[2]), '127.0.0.1');
