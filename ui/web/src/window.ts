// The visible rows of a long list: only they are in the document.
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

export function useWindow(body: RefObject<HTMLElement | null>, n: number, height: number): [number, number] {
  const [range, setRange] = useState<[number, number]>([0, 60]);
  useLayoutEffect(() => {
    let frame = 0;
    const measure = () => {
      frame = 0;
      if (!body.current) return;
      const top = -body.current.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(top / height) - 10);
      const last = Math.ceil((top + innerHeight) / height) + 10;
      setRange((r) => (r[0] === first && r[1] === last ? r : [first, last]));
    };
    const soon = () => {
      frame ||= requestAnimationFrame(measure);
    };
    measure();
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
    };
  }, [n, height]);
  return [range[0], Math.max(range[0], Math.min(n, range[1]))];
}
