// Runs one program from a script, and passes on to it the signals that this process gets, so that no child outlives
// its parent. Runs on Node 18 and up, since with-node.mjs needs it. It does not decide what a failure means.

import { spawn } from 'node:child_process';
import { constants } from 'node:os';

const handedOn = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Runs `command` to its end, on this process's own terminal unless `options.stdio` says otherwise (options as in
 * child_process.spawn). Resolves to its exit `code` or the `signal` that ended it, the last signal that this process
 * `received` meanwhile, and the `output` of piped streams, which `onText` gets as it comes. Rejects when the program
 * cannot be started.
 */
export function run(command, args, { onText = () => {}, ...options } = {}) {
  return new Promise((resolve, reject) => {
    let received = null;
    let output = '';
    // A signal to the whole process group reaches the child twice, directly and from here: this process cannot tell
    // such a signal from one to itself alone.
    const handOn = (signal) => {
      received = signal;
      child.kill(signal);
    };
    const stopListening = () => handedOn.forEach((signal) => process.off(signal, handOn));
    // Before the child starts: a signal in between would end this process and leave the child running.
    handedOn.forEach((signal) => process.on(signal, handOn));
    const child = spawn(command, args, { stdio: 'inherit', ...options });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => {
        output += text;
        onText(text);
      });
    }
    child.on('error', (error) => {
      stopListening();
      reject(error);
    });
    child.on('close', (code, signal) => {
      stopListening();
      resolve({ code, signal, received, output });
    });
  });
}

/**
 * Runs `command` as the last thing that this process does, and ends like it. A signal that arrives in several copies
 * (the terminal sends one to the group, npm another) must not end this process between the child's end and its own,
 * so the listeners stay.
 */
export async function become(command, args, options) {
  handedOn.forEach((signal) => process.on(signal, () => {}));
  const ended = await run(command, args, options);
  if (ended.signal !== null) process.removeAllListeners(ended.signal);
  endLike(ended);
}

/** Ends this process the way the child of `run` ended: with its exit code, or by the same signal. Does not return. */
export function endLike({ code, signal }) {
  if (signal === null) process.exit(code);
  process.kill(process.pid, signal);
  // This process still runs if it is the first one of a container, which no signal ends by default.
  process.exit(128 + constants.signals[signal]);
}

/** One line of progress or failure for the person at the terminal; standard output stays free for results. */
export function say(text) {
  process.stderr.write(`pasted: ${text}\n`);
}
