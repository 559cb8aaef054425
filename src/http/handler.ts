// What a handler is: a function from a request to a reply. It throws a Refusal to say no; anything else that it throws
// is the server's own failure.

import type { Awaitable } from '../core/awaitable.ts';
import type { Reply } from './reply.ts';
import type { Request } from './request.ts';
import type { RouteName } from './routes.ts';

export type Handler = (request: Request) => Awaitable<Reply>;

/** One handler for every route of the table, by name. */
export type Handlers = Readonly<Record<RouteName, Handler>>;
