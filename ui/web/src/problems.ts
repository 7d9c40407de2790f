// Problems of queues.
import type { Queue } from "./api";
import { many } from "./text";
import { span } from "./time";

export interface Problem {
  kind: "late" | "dead" | "paused" | "no worker";
  says: string;
  weight: number; // the worst first
}

// lateAfter is how long a message may be ready until its queue counts as late.
const lateAfter = 10_000;

// problem is the worst problem of a queue.
function problem(q: Queue, now: number): Problem | null {
  const waits = q.oldest_ready ? now - Date.parse(q.oldest_ready) : 0;
  if (q.paused) {
    if (q.ready === 0) return { kind: "paused", says: "leasing is paused", weight: 1 };
    return { kind: "paused", says: `leasing is paused, ${many(q.ready, "message is", "messages are")} ready`, weight: 20 + Math.log10(q.ready) };
  }
  if (q.ready > 0 && waits > lateAfter) {
    const says = `${many(q.ready, "message is", "messages are")} ready, the oldest for ${span(waits)}`;
    if (q.leased === 0 && !q.acked_per_s) return { kind: "no worker", says: says + "; no worker leases them", weight: 60 + Math.log10(waits) };
    return { kind: "late", says, weight: 50 + Math.log10(waits) };
  }
  if (q.dead > 0) return { kind: "dead", says: many(q.dead, "dead letter"), weight: 30 + Math.log10(q.dead) };
  return null;
}

export function problems(all: Queue[], now: number): Map<string, Problem> {
  const found = new Map<string, Problem>();
  for (const q of all) {
    const p = problem(q, now);
    if (p) found.set(q.queue, p);
  }
  return found;
}
