// A reporter for node:test that ends the process at the first failing test, since one failure kills a mutant. It needs
// to run in the process that runs the tests (--test-isolation=none). It reports nothing.

export default async function* firstFailure(events) {
  for await (const { type, data } of events) {
    if (type === 'test:fail' && data.todo === undefined) process.exit(1);
  }
  yield '';
}
