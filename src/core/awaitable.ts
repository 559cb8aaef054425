// Values that are there at once or come later. A wait for what is there already costs a fair part of what a small read
// does in all, so that the way of a read awaits nothing that need not be awaited.

export type Awaitable<Value> = Value | Promise<Value>;

/** `step` with the value: in this very turn when it is there, and then it may throw; otherwise once it has come. */
export function andThen<Value, Next>(
  value: Awaitable<Value>,
  step: (value: Value) => Awaitable<Next>,
): Awaitable<Next> {
  return value instanceof Promise ? value.then(step) : step(value);
}
