// A reporter for node:test that ends the process at the first test that fails, in the process that runs the tests
// (--test-isolation=none): one failure is all that a mutant needs. It reports nothing.

export default async function* firstFailure(events) {
  for await (const { type, data } of events) {
    if (type === 'test:fail' && data.todo === undefined) process.exit(1);
  }
  yield '';
}
