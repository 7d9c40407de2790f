// Bulk operations. One begins after some seconds in which it can be undone, shows its
// progress, and continues while the viewer visits other pages.
import { signal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { say } from "./api";
import { tell, type Done } from "./dialog";
import { touch } from "./store";
import { count } from "./text";

export interface Work {
  queue: string;
  does: string; // such as "Dropping 12 dead letters"
  nothing: string; // the message when it was undone
  total: number; // run reports how many of them are done; 0: it reports nothing
  run: (told: (done: number) => void, stop: AbortSignal) => Promise<Done>;
}

interface Doing extends Work {
  left: Signal<number>; // seconds until it begins
  done: Signal<number>;
  stop: AbortController;
}

export const grace = 5;

const doing = signal<Doing[]>([]);

// busy is whether an operation on a queue is in progress.
export const busy = (queue: string) => doing.value.some((w) => w.queue === queue);

addEventListener("beforeunload", (e) => {
  if (doing.value.length > 0) e.preventDefault(); // closing the page would end it
});

// later runs an operation after the seconds of grace, unless it is undone.
export async function later(work: Work): Promise<void> {
  const w: Doing = { ...work, left: signal(grace), done: signal(0), stop: new AbortController() };
  doing.value = [...doing.value, w];
  try {
    while (w.left.value > 0 && !w.stop.signal.aborted) {
      await second(w.stop.signal);
      w.left.value--;
    }
    tell(w.stop.signal.aborted ? { text: w.nothing } : await w.run((n) => (w.done.value = n), w.stop.signal));
  } catch (err) {
    tell({ text: say(err) }, true);
  } finally {
    doing.value = doing.value.filter((other) => other !== w);
    touch(w.queue);
  }
}

// second waits for a second, or until stopped.
function second(stop: AbortSignal): Promise<void> {
  return new Promise((go) => {
    const timer = setTimeout(go, 1000);
    stop.addEventListener("abort", () => (clearTimeout(timer), go()), { once: true });
  });
}

export function Works() {
  if (doing.value.length === 0) return null;
  return (
    <section class="works" aria-label="Under way">
      {doing.value.map((w) => (
        <Progress key={w} w={w} />
      ))}
    </section>
  );
}

function Progress({ w }: { w: Doing }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // After the dialog has closed, which returns the focus to the element that opened it.
    const timer = setTimeout(() => box.current?.querySelector("button")?.focus({ preventScroll: true }));
    return () => {
      clearTimeout(timer);
      if (box.current?.contains(document.activeElement)) document.getElementById("main")?.focus({ preventScroll: true });
    };
  }, []);
  const waits = w.left.value > 0;
  const stopped = w.stop.signal.aborted;
  return (
    <div class="progress" role="group" aria-label={w.does} ref={box}>
      <span>
        {w.does}
        {waits ? ` in ${w.left.value}s` : w.total > 0 ? `: ${count(w.done.value)} done` : "…"}
      </span>
      {waits ? <span class="fill" /> : <progress aria-label="Progress" max={w.total || undefined} value={w.total ? w.done.value : undefined} />}
      {(waits || w.total > 0) && (
        <button disabled={stopped} onClick={() => w.stop.abort()}>
          {waits ? "Undo" : "Stop"}
        </button>
      )}
    </div>
  );
}
