// What must be true of every answer: the contract's common headers and form of errors, and answers in the order of
// their requests. What is wrong is returned in words, instead of failing a test.

import { assertContract } from '../support/answer-contract.ts';
import { wholeAnswers, type RawAnswer } from '../support/raw-http.ts';

/** What is wrong with an answer of the service itself, whatever was asked; `isHead` when it was a HEAD. */
export function contractFaults(answer: RawAnswer, isHead = false): string[] {
  return [
    ...faultsOf(() => assertContract(answer)),
    ...(answer.status >= 400 ? faultsOf(() => assertErrorForm(answer, isHead)) : []),
  ];
}

function assertErrorForm(answer: RawAnswer, isHead: boolean): void {
  if (answer.header('content-type') !== 'application/json') throw new Error('an error that is not JSON');
  if (!isHead && typeof answer.json()['error'] !== 'string') throw new Error('an error that does not say what');
}

/** The answers in what was received, without interim ones; with a fault when there is anything else. */
export function readAnswers(
  received: Buffer,
  methods: readonly string[],
): { answers: readonly RawAnswer[]; faults: string[] } {
  let answers: readonly RawAnswer[] = [];
  const faults = faultsOf(() => {
    const whole = wholeAnswers(received, methods);
    answers = whole.answers.filter(({ status }) => status >= 200);
    if (whole.rest.length > 0) throw new Error(`bytes that are no answer: ${whole.rest.toString('latin1', 0, 80)}`);
  });
  return { answers, faults };
}

function faultsOf(check: () => void): string[] {
  try {
    check();
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}
