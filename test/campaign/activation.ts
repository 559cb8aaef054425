// The service behind a listening socket that outlives it, as systemd's socket activation gives it: activate.c.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WITHOUT_LIMITS } from './service.ts';

export interface Activation {
  readonly port: number;
  /** SIGTERM to the service; resolves with its exit code when the next one has been started. */
  restart(): Promise<number>;
  output(): string;
  /** Ends both. */
  end(): Promise<void>;
}

export interface ActivationOptions {
  readonly folder: string;
  readonly main: string;
  readonly ownGroup: boolean;
}

/** Builds the activator in `folder`, and runs the service at `main` under it with its database there. */
export async function startActivated({ folder, main, ownGroup }: ActivationOptions): Promise<Activation> {
  const source = fileURLToPath(new URL('./activate.c', import.meta.url));
  const program = join(folder, 'activate');
  const { status, stderr } = spawnSync('cc', ['-O1', '-Wall', '-Werror', '-o', program, source], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`cc ended with ${status}: ${stderr}`);
  const child = spawn(program, [process.execPath, main], {
    cwd: folder,
    env: { ...WITHOUT_LIMITS, SERVICE_DB: join(folder, 'pasted.db') },
    detached: ownGroup,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const closed = once(child, 'close');
  let output = '';
  let hear = (): void => {};
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      hear();
    });
  }

  async function printed(pattern: RegExp, from: number): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(output.slice(from));
      if (match !== null) return match;
      await Promise.race([new Promise<void>((resolve) => (hear = resolve)), closed]);
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the activator has ended:\n${output}`);
    }
  }

  const [, port] = await printed(/^port (\d+)$/m, 0);
  let [, pid] = await printed(/^started (\d+)$/m, 0);
  return {
    port: Number(port),
    output: () => output,
    restart: async () => {
      const from = output.length;
      process.kill(Number(pid), 'SIGTERM');
      const [, code] = await printed(/^ended (\d+)$/m, from);
      [, pid] = await printed(/^started (\d+)$/m, from);
      return Number(code);
    },
    end: async () => {
      child.kill('SIGKILL');
      await closed;
      process.off('exit', killAtExit);
    },
  };
}
