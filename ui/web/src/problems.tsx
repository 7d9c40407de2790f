// What is wrong, as the server finds it.
import { signal } from "@preact/signals";
import { get, say } from "./api";
import { useReading } from "./reading";
import { trouble } from "./store";
import { visible } from "./text";
import { tick } from "./time";

export interface Problem {
  problem: string;
  queue?: string; // missing: it is the server's or its store's
  message: string;
  hint: string;
}

const names: Record<string, string> = { no_worker: "no worker", was_late: "was late", deaths: "dead" };

// kind is the name of a problem for people.
export const kind = (p: Problem) => names[p.problem] ?? p.problem;

// problems has the worst first.
export const problems = signal<Problem[]>([]);

// unread is why problems could not be read again; null: they were.
const unread = signal<unknown>(null);

// Unread says that problems could not be read, unless the page tells of other trouble anyway.
export const Unread = () => (trouble.value != null || unread.value == null ? null : <p class="trouble" role="alert">Problems cannot be read: {say(unread.value)}</p>);

// Wrong says what is wrong, and what to do about it.
export const Wrong = ({ p }: { p: Problem }) => (
  <span>
    {visible(p.message)} <small class="muted">{visible(p.hint)}</small>
  </span>
);

// useProblems keeps problems up to date while a page is shown.
export function useProblems(): void {
  useReading("problems", Math.floor(tick.value / 5), 2500, async (stop) => {
    try {
      problems.value = (await get<{ problems: Problem[] }>("v1/problems", stop)).problems;
      unread.value = null;
    } catch (e) {
      if (!stop.aborted) unread.value = e;
    }
  });
}
