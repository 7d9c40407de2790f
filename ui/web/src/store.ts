// What the queues hold, kept up to date while somebody looks.
import { effect, signal } from "@preact/signals";
import { at, Failure, get, type Queue } from "./api";
import { needsLogin, standing } from "./session";
import { route } from "./route";

// queues are all that were told of; version moves with each change of any.
export const queues = new Map<string, Queue>();
export const version = signal(0);
export const loaded = signal(false);
export const trouble = signal<unknown>(null);

// moved has, of each queue that somebody looks at, a number that grows with each change.
const moved = new Map<string, ReturnType<typeof signal<number>>>();

export function changes(queue: string) {
  let s = moved.get(queue);
  if (!s) moved.set(queue, (s = signal(0)));
  return s;
}

function same(a: Queue | undefined, b: Queue): boolean {
  return a !== undefined && JSON.stringify(a) === JSON.stringify(b);
}

// take keeps what was told of a queue.
export function take(all: Queue[]): void {
  let any = false;
  for (const q of all) {
    if (same(queues.get(q.queue), q)) continue;
    any = true;
    queues.set(q.queue, q);
    const s = moved.get(q.queue);
    if (s) s.value = (s.value ?? 0) + 1;
  }
  if (any) version.value++;
}

export async function refresh(queue: string): Promise<void> {
  take([await get<Queue>(at(queue))]);
}

// touch reads a queue again, and has its lists read again, after something was done.
export function touch(queue: string): void {
  const s = changes(queue);
  s.value = (s.value ?? 0) + 1;
  void refresh(queue).catch(() => {});
}

// refreshAll reads all queues.
async function refreshAll(): Promise<void> {
  const all: Queue[] = [];
  let after = "";
  do {
    const page: { queues: Queue[]; next: string } = await get(`v1/queues?limit=1000${after && "&after=" + encodeURIComponent(after)}`);
    all.push(...page.queues);
    after = page.next;
  } while (after !== "");
  const known = new Set(all.map((q) => q.queue));
  for (const name of queues.keys()) {
    if (known.has(name)) continue;
    queues.delete(name);
    version.value++;
  }
  take(all);
  loaded.value = true;
}

// look keeps what is shown up to date: one queue, or all of them.
async function look(): Promise<void> {
  const { page, queue } = route.value;
  if (page === "queue" || page === "message") await refresh(queue);
  if (!loaded.value || page === "queues" || page === "dead") await refreshAll();
}

effect(() => {
  if (needsLogin.value || !standing.value) return;
  void route.value;
  let stopped = false;
  let timer = 0;
  const round = async () => {
    if (!document.hidden) {
      try {
        await look();
        trouble.value = null;
      } catch (err) {
        if (!(err instanceof Failure && err.status === 401)) trouble.value = err;
      }
    }
    if (!stopped) timer = window.setTimeout(round, queues.size > 2000 && route.value.page === "queues" ? 5000 : 800);
  };
  void round();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
});
