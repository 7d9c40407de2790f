// Reading again after changes: at once after a pause, and less often the more viewers there
// are, so that viewers do not slow down the server.
import { useEffect, useRef } from "preact/hooks";
import { crowd } from "./store";

const company = 20; // up to this many viewers pauses are as for one; with twice as many they are twice as long

// useReading calls read when what changes, and again, after a pause of at least some
// milliseconds, when the data has changed. Slow reads pause longer. One call runs at a time.
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
      // Spread out, so that viewers do not all read at once; reading takes a third of the time at most.
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
