// The state of the queues, kept up to date by the server's events while the page is visible.
import { batch, effect, signal } from "@preact/signals";
import { at, Failure, get, type Queue } from "./api";
import { needsLogin, standing } from "./session";
import { route } from "./route";
import { today } from "./trends";

// queues are all known queues; version changes with any of them.
export const queues = new Map<string, Queue>();
export const version = signal(0);
export const loaded = signal(false);
export const trouble = signal<unknown>(null);

// crowd is how many viewers the server has.
export const crowd = signal(1);

// moved has a number for each visible queue that grows when its messages may have changed.
const moved = new Map<string, ReturnType<typeof signal<number>>>();

// toldAt is when the last event about a queue came; answers to earlier requests are older.
const toldAt = new Map<string, number>();

export function changes(queue: string) {
  let s = moved.get(queue);
  if (!s) moved.set(queue, (s = signal(0)));
  return s;
}

function bump(queue: string): void {
  const s = moved.get(queue);
  if (s) s.value = (s.value ?? 0) + 1;
}

const holds = ["scheduled", "ready", "leased", "dead", "finished", "history", "next_due", "oldest_ready", "paused", "paused_until", "changes"] as const;

// take stores the state of a queue; asked is when a read of it was sent, if it was read.
function take(all: Queue[], asked?: number): void {
  let any = false;
  for (const q of all) {
    if (asked === undefined) toldAt.set(q.queue, performance.now());
    else if ((toldAt.get(q.queue) ?? -1) > asked) continue;
    const old = queues.get(q.queue);
    const now = asked === undefined || !old ? q : { ...old, paused_until: undefined, gone: undefined, ...q };
    any = true;
    if (q.gone && q.queue !== watched.value) queues.delete(q.queue);
    else queues.set(q.queue, now);
    if (!old || q.gone || holds.some((h) => old[h] !== now[h])) bump(q.queue);
  }
  const gone = all.filter((q) => q.gone).map((q) => q.queue);
  if (gone.length > 0) today.value = new Set([...today.value, ...gone]);
  if (any) version.value++;
}

export async function refresh(queue: string): Promise<void> {
  const asked = performance.now();
  take([await get<Queue>(at(queue))], asked);
}

// touch reads a queue and its lists again after an action.
export function touch(queue: string): void {
  bump(queue);
  void refresh(queue).catch(() => {});
}

// refreshAll reads all queues.
async function refreshAll(): Promise<void> {
  const asked = performance.now();
  const all: Queue[] = [];
  let after = "";
  do {
    const page: { queues: Queue[]; next: string } = await get(`v1/queues?limit=1000${after && "&after=" + encodeURIComponent(after)}`);
    all.push(...page.queues);
    after = page.next;
  } while (after !== "");
  const known = new Set(all.map((q) => q.queue));
  for (const name of [...queues.keys()]) if (!known.has(name) && (toldAt.get(name) ?? -1) < asked) queues.delete(name);
  batch(() => {
    take(all, asked);
    version.value++;
    loaded.value = true;
  });
}

// look reads the visible queues.
async function look(queue: string): Promise<void> {
  try {
    await (queue === "" ? refreshAll() : refresh(queue));
    trouble.value = null;
  } catch (err) {
    if (!(err instanceof Failure && err.status === 401)) trouble.value = err;
  }
}

const shown = signal(!document.hidden);
addEventListener("visibilitychange", () => (shown.value = !document.hidden));

// watched is the visible queue; "" means all.
const watched = signal("");
effect(() => {
  const { page, queue } = route.value;
  watched.value = page === "queue" || page === "message" ? queue : "";
});

const lost = new Failure(0, "unreachable", "the connection to the server is lost", "retrying");

// refused asks why an event source was refused, which EventSource does not say.
async function refused(url: string): Promise<unknown> {
  const stop = new AbortController();
  try {
    const answer = await fetch(url, { credentials: "same-origin", redirect: "error", cache: "no-store", signal: stop.signal });
    if (answer.ok) return null;
    const e = (await answer.json()).error;
    return new Failure(answer.status, e.code, `this page is not live: ${e.message}`, "it is read again every few seconds");
  } catch {
    return lost;
  } finally {
    stop.abort();
  }
}

// follow subscribes to a queue, or to all, until the function it returns is called.
function follow(queue: string): () => void {
  let source: EventSource | null = null;
  let timer = 0;
  const connect = () => {
    source = new EventSource(`v1/live?${queue === "" ? "overview=changes" : `queues=${encodeURIComponent(queue)}`}`);
    const on = (name: string, act: (data: any) => void) => source!.addEventListener(name, (e) => act(JSON.parse((e as MessageEvent<string>).data)));
    on("begin", (data) => {
      clearTimeout(timer);
      trouble.value = null;
      crowd.value = data.viewers;
      if (!data.resumed) void look(queue);
    });
    on("queues", (data) => batch(() => ((crowd.value = data.viewers), take(data.queues))));
    on("store", (data) => (trouble.value = data.up ? null : new Failure(0, "unavailable", "the server's store does not answer", "this page is out of date")));
    source.onerror = () => {
      clearTimeout(timer);
      if (source!.readyState !== EventSource.CLOSED) {
        timer = window.setTimeout(() => (trouble.value = lost), 2000); // EventSource reconnects by itself
        return;
      }
      // It was refused: read once, then try again.
      timer = window.setTimeout(connect, 3000 + Math.random() * 1000);
      void look(queue).then(async () => (trouble.value ??= await refused(source!.url)));
    };
  };
  connect();
  return () => {
    clearTimeout(timer);
    source?.close();
  };
}

effect(() => {
  if (needsLogin.value || !standing.value || !shown.value) return undefined;
  return follow(watched.value);
});
