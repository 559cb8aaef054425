// Notices the authority that another process makes on the same database (`pasted admin create` beside the server). What
// this process makes, it knows at once. Who is told is the business of whoever made `authorities`.

import type { Authorities } from './authority.ts';

export interface AuthorityWatch {
  /** Looks now, and then again and again until there is one. Never rejects. */
  begin(): Promise<void>;
  stop(): void;
}

const INTERVAL_MS = 1000;

/** A look is one read of one row, and a failing storage is others' to report. */
export function watchForAuthority({ find }: Pick<Authorities, 'find'>, intervalMs = INTERVAL_MS): AuthorityWatch {
  let timer: NodeJS.Timeout | undefined;
  const isThere = (): Promise<boolean> => find().then((found) => found !== undefined, () => false);
  const stop = (): void => clearInterval(timer);
  return {
    begin: async () => {
      if (await isThere()) return;
      timer = setInterval(() => {
        void isThere().then((isFound) => {
          if (isFound) stop();
        });
      }, intervalMs);
    },
    stop,
  };
}
