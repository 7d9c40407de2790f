// What happened of late, queue by queue, for small charts.
import { effect, signal } from "@preact/signals";
import { get } from "./api";
import { route } from "./route";
import { info, needsLogin } from "./session";
import { parseDuration } from "./time";

export interface Spark {
  pushed: number[];
  acked: number[];
}

export interface Lately {
  spark: Spark;
  lateness: { p50_ms: number | null; p99_ms: number | null };
  rate: number; // handled a second, in the last steps that are over
}

// lately are the last 15 minutes of the queues to which something happened.
export const lately = signal<Map<string, Lately>>(new Map());

const most = 2000; // queues, of which so much is read

async function read(): Promise<void> {
  const all = new Map<string, Lately>();
  let after = "";
  do {
    const page: { step: string; queues: { queue: string; spark: Spark; lateness: Lately["lateness"] }[]; next: string } = await get(`v1/trends?span=15m&limit=1000${after && "&after=" + encodeURIComponent(after)}`);
    const step = parseDuration(page.step) / 1000;
    for (const { queue, spark, lateness } of page.queues) {
      const last = spark.acked.slice(-3, -1);
      all.set(queue, { spark, lateness, rate: last.reduce((n, x) => n + x, 0) / (step * Math.max(1, last.length)) });
    }
    after = page.next;
  } while (after !== "" && all.size < most);
  lately.value = all;
}

effect(() => {
  if (needsLogin.value || !info.value?.trends || route.value.page !== "queues") return undefined;
  const again = () => void (document.hidden || read().catch(() => {}));
  again();
  const timer = setInterval(again, 30_000);
  return () => clearInterval(timer);
});
