import type { Settlement } from "./types.js";

/** What a handler returns or throws to decide what becomes of its message. */
export class Verdict {
  readonly kind = "tarry verdict";
  /** @internal */
  constructor(readonly settlement: Omit<Settlement, "lease"> | undefined) {}
}

/** Reports whether something is a Verdict, also of another copy of this package. */
export const isVerdict = (it: unknown): it is Verdict => (it as Verdict | null | undefined)?.kind === "tarry verdict";

/** Postpones the message until a delay such as "5m" has passed, or a time, without counting the attempt. */
export const snooze = (until: string | Date) => new Verdict({ do: "snooze", ...when(until) });

/** Retries the message after a delay or at a time, instead of after its own backoff. The attempt counts. */
export const retryIn = (until: string | Date, why?: unknown) => new Verdict({ do: "retry", ...when(until), ...reason(why) });

/** Makes the message dead at once: it is hopeless. */
export const bury = (why?: unknown) => new Verdict({ do: "bury", ...reason(why) });

/** Says that the handler has settled its message itself, with Client.settle. */
export const settled = () => new Verdict(undefined);

/** Returns how a message is settled whose handler threw. */
export function failed(error: unknown): Omit<Settlement, "lease"> | undefined {
  return isVerdict(error) ? error.settlement : { do: "retry", ...reason(error) };
}

const when = (until: string | Date) => (until instanceof Date ? { due: until.toISOString() } : { delay: until });

function reason(why: unknown): { reason?: string } {
  if (why === undefined) return {};
  let text = "an error that cannot be shown";
  try {
    text = why instanceof Error && why.name === "Error" ? why.message : String(why);
  } catch {
    // Its methods are the user's, and throw.
  }
  return { reason: Buffer.from(text.slice(0, 1024)).toString() }; // half characters, which the server refuses, are replaced
}
