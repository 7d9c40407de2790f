// What a page reads again when it has changed: at once after a rest, and the less often the
// more people look, so that those who push need not wait for those who look.
import { useEffect, useRef } from "preact/hooks";
import { crowd } from "./store";

const company = 20; // with so many who look at the server a rest is as long as alone, with twice as many twice

// useReading calls read when what is shown becomes another, and again, after a rest of at
// least so many milliseconds, when it has changed; what costs the server more rests longer. One call is under way at a time.
export function useReading(what: string, change: unknown, least: number, read: (stop: AbortSignal) => Promise<void>): void {
  const latest = useRef(read);
  latest.current = read;
  const at = useRef({ what: null as string | null, stop: new AbortController(), timer: 0, begun: 0, took: 0, busy: false, again: false });
  useEffect(() => {
    const s = at.current;
    const begin = () => {
      const stop = s.stop;
      s.timer = 0;
      s.busy = true;
      s.begun = performance.now();
      void latest.current(stop.signal).finally(() => {
        if (stop.signal.aborted) return;
        s.busy = false;
        s.took = performance.now() - s.begun;
        if (s.again) later();
      });
    };
    const later = () => {
      s.again = s.busy;
      if (s.busy || s.timer) return;
      // Not all at the same instant, and never for more than a third of the time.
      const rest = Math.max(least * Math.max(1, (crowd.value / company) * (0.75 + Math.random() / 2)), s.took * 3);
      s.timer = window.setTimeout(begin, Math.max(0, s.begun + rest - performance.now()));
    };
    if (s.what === what) return later();
    s.what = what;
    s.stop.abort();
    s.stop = new AbortController();
    clearTimeout(s.timer);
    s.took = 0;
    s.again = false;
    begin();
  }, [what, change]);
  useEffect(
    () => () => {
      clearTimeout(at.current.timer);
      at.current.stop.abort();
    },
    [],
  );
}
