// The last minutes of each queue, for small charts.
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
  rate: number; // handled per second, in the last complete steps
}

// lately has the last 15 minutes of the queues with activity.
export const lately = signal<Map<string, Lately>>(new Map());

// today are queues to which something happened within about a day, also those that are empty now.
export const today = signal<Set<string>>(new Set());

// inView are the queues whose rows are visible.
export const inView = signal<string[]>([]);

const most = 2000; // queues to read besides the visible ones
const period = 30_000; // between two reads
const named = 50; // queues in a request, so that their names fit the request line

// readAt is when a queue was last read, also one without activity.
let readAt = new Map<string, number>();
let whole = true; // all queues were read, or are being read, so a missing one has no activity

async function page(query: string, into: Map<string, Lately>): Promise<string> {
  const p: { step: string; queues: { queue: string; spark: Spark; lateness: Lately["lateness"] }[]; next: string } = await get(`v1/trends?span=15m&${query}`);
  const step = parseDuration(p.step) / 1000;
  for (const { queue, spark, lateness } of p.queues) {
    const last = spark.acked.slice(-3, -1);
    into.set(queue, { spark, lateness, rate: last.reduce((n, x) => n + x, 0) / (step * Math.max(1, last.length)) });
    readAt.set(queue, Date.now());
  }
  return p.next;
}

async function read(): Promise<void> {
  const all = new Map<string, Lately>();
  readAt = new Map();
  let after = "";
  do after = await page(`limit=1000${after && "&after=" + encodeURIComponent(after)}`, all);
  while (after !== "" && all.size < most);
  whole = after === "";
  lately.value = all;
  await look();
}

// look reads the visible queues that were not read yet.
async function look(): Promise<void> {
  const wanted = whole ? [] : inView.value.filter((q) => Date.now() - (readAt.get(q) ?? 0) > period);
  if (wanted.length === 0) return;
  const all = new Map(lately.value);
  for (const q of wanted) readAt.set(q, Date.now());
  for (let i = 0; i < wanted.length; i += named) await page(`queues=${wanted.slice(i, i + named).map(encodeURIComponent).join()}`, all);
  lately.value = all;
}

async function readToday(): Promise<void> {
  const all = new Set<string>();
  let after = "";
  do {
    const p: { queues: { queue: string }[]; next: string } = await get(`v1/trends?span=30h&step=6h&limit=1000${after && "&after=" + encodeURIComponent(after)}`);
    for (const q of p.queues) if (q.queue !== "_other") all.add(q.queue);
    after = p.next;
  } while (after !== "");
  today.value = all;
}

const shown = () => !needsLogin.value && info.value?.trends && route.value.page === "queues";

effect(() => {
  if (!shown()) return undefined;
  const now = (read: () => Promise<void>) => void (document.hidden || read().catch(() => {}));
  now(read);
  now(readToday);
  const timers = [setInterval(now, period, read), setInterval(now, 20 * period, readToday)];
  return () => timers.forEach(clearInterval);
});

effect(() => {
  if (!shown() || inView.value.length === 0) return undefined;
  const timer = setTimeout(() => look().catch(() => {}), 150); // once scrolling stops
  return () => clearTimeout(timer);
});
