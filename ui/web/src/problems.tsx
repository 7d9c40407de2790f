// What is wrong, as the server finds it.
import { signal } from "@preact/signals";
import { get } from "./api";
import { useReading } from "./reading";
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
    } catch {
      // The events say that the server is away.
    }
  });
}
