// Changes of many messages: of groups of dead letters, and of those chosen in a list.
import { at, call, Failure, post, say, sweep, type Message, type Swept } from "./api";
import { ask, tell, type Done } from "./dialog";
import { Foreign } from "./parts";
import { can, may } from "./session";
import { count, many, visible } from "./text";
import { exact, fromInput, toInput } from "./time";
import { grace, later } from "./work";

// The wait is the only undo.
const Wait = () => <p class="muted">It begins after {grace} seconds. Until then it can be undone, and not from then on.</p>;

export type Deed = "redrive" | "drop";

// filters is whether the engine can change messages by a filter. If not, the messages shown
// are redriven by their ids.
export const filters = () => can("range") && can("if_state");

// choose counts the messages of some groups, or of all, and asks. Messages that die later
// are left alone.
export async function choose(queue: string, deed: Deed, groups: { error: string; ids: string[] }[] | null, of: string): Promise<void> {
  const filter = groups ? { groups: groups.map((g) => g.error) } : {};
  const ids = groups?.flatMap((g) => g.ids) ?? [];
  const hit: Swept = filters() ? await post<Swept>(at(queue, deed), { ...filter, dry_run: true }) : { count: ids.length, skipped: 0, seen: 0 };
  if (hit.count === 0) return tell({ text: "They are dead no more." });
  ask({
    title: deed === "redrive" ? "Redrive dead letters?" : "Drop dead letters?",
    text: (
      <>
        <p>
          <strong>{many(hit.count, "dead letter")}</strong> of <Foreign text={queue} />
          {of && <>, {of},</>} {deed === "redrive" ? "become ready again, with their attempts reset to 0." : "are deleted for good."}
        </p>
        <Wait />
      </>
    ),
    yes: `${deed === "redrive" ? "Redrive" : "Drop"} ${count(hit.count)}`,
    danger: deed === "drop",
    act: async () =>
      void later({
        queue,
        does: `${deed === "redrive" ? "Redriving" : "Dropping"} ${many(hit.count, "dead letter")} of ${visible(queue)}`,
        nothing: `Nothing was ${deed === "redrive" ? "redriven" : "dropped"}.`,
        total: hit.count,
        run: async (told, stop) => {
          const n = filters() ? await sweep(at(queue, deed), { ...filter, to: hit.to }, (s) => told(s.count + s.skipped), stop) : await redriveNamed(queue, ids, told, stop);
          return ended(deed, n, stop.aborted && !n.done);
        },
      }),
  });
}

// ended says how it ended. If it was stopped, the chunk in progress is done but not counted.
function ended(deed: Deed, n: Swept, stopped: boolean): Done {
  const words = deed === "redrive" ? many(n.count, "dead letter is ready again", "dead letters are ready again") : many(n.count, "dead letter is gone", "dead letters are gone");
  return { text: (stopped ? `Stopped. At least ${words}.` : `${words}.`) + (n.skipped > 0 ? ` ${count(n.skipped)} had changed meanwhile, or their key is in use.` : ""), bad: n.skipped > 0 };
}

async function redriveNamed(queue: string, ids: string[], told: (done: number) => void, stop: AbortSignal): Promise<Swept> {
  const n: Swept = { count: 0, skipped: 0, seen: 0 };
  for (; n.seen < ids.length && !stop.aborted; told(n.seen)) {
    const some = ids.slice(n.seen, n.seen + 500);
    const r = await post<Swept>(at(queue, "redrive"), { ids: some });
    n.count += r.count;
    n.skipped += r.skipped;
    n.seen += some.length;
  }
  n.done = n.seen === ids.length;
  return n;
}

// Choice is something to do with the messages chosen in a list.
interface Choice {
  name: string;
  danger?: boolean;
  ask: (chosen: Message[]) => void;
}

// choices are what the viewer may do with messages of a queue in a state.
export function choices(queue: string, state: string): Choice[] {
  const all: (Choice | false)[] = [];
  const change = may(queue, "push", "operate") && can("if_state");
  if (state === "dead")
    all.push(
      may(queue, "operate") && can("redrive") && { name: "Redrive…", ask: (chosen) => redriveChosen(queue, chosen) },
      change && can("cancel") && { name: "Drop…", danger: true, ask: (chosen) => cancelChosen(queue, chosen, "Drop", "Dropping", "dropped") },
    );
  if (state === "scheduled" || state === "ready")
    all.push(
      change && can("reschedule") && { name: "Reschedule…", ask: (chosen) => moveChosen(queue, chosen) },
      change && can("cancel") && { name: "Cancel…", danger: true, ask: (chosen) => cancelChosen(queue, chosen, "Cancel", "Cancelling", "cancelled") },
    );
  return all.filter((c) => c !== false);
}

const Chosen = ({ queue, n, children }: { queue: string; n: number; children: string }) => (
  <>
    <p>
      <strong>{many(n, "chosen message")}</strong> of <Foreign text={queue} /> {children}
    </p>
    <Wait />
  </>
);

function redriveChosen(queue: string, chosen: Message[]): void {
  const n = chosen.length;
  ask({
    title: "Redrive the chosen messages?",
    text: <Chosen queue={queue} n={n}>{`${n === 1 ? "becomes" : "become"} ready again, with attempts reset to 0.`}</Chosen>,
    yes: `Redrive ${count(n)}`,
    act: async () =>
      void later({
        queue,
        does: `Redriving ${many(n, "message")} of ${visible(queue)}`,
        nothing: "Nothing was redriven.",
        total: n,
        run: async (told, stop) => {
          const done = await redriveNamed(queue, chosen.map((m) => m.id), told, stop);
          return ended("redrive", done, !done.done);
        },
      }),
  });
}

// why are the reasons for which a message was left alone, by the code of its error.
const why: Record<string, string> = { stale: "in another state by now", leased: "with a worker by now", not_found: "gone by then" };

// counted says how many messages were changed, and why others were not.
function counted(n: number, all: number, done: string, codes: string[]): Done {
  const left = [...new Set(codes)].map((code) => `${count(codes.filter((c) => c === code).length)} ${why[code] ?? code}`);
  const text = `${n + codes.length < all ? "Stopped. " : ""}${many(n, "message is", "messages are")} ${done}.`;
  return left.length ? { text: `${text} Left alone: ${left.join(", ")}.`, bad: true } : { text };
}

interface Result {
  ok: boolean;
  error?: { code: string };
}

function cancelChosen(queue: string, chosen: Message[], deed: string, doing: string, done: string): void {
  const n = chosen.length;
  const refs = chosen.map((m) => ({ queue, id: m.id, if_state: m.state }));
  ask({
    title: `${deed} the chosen messages?`,
    text: <Chosen queue={queue} n={n}>{`${n === 1 ? "is" : "are"} deleted for good. No worker will get ${n === 1 ? "it" : "them"}.`}</Chosen>,
    yes: `${deed} ${count(n)}`,
    danger: true,
    act: async () =>
      void later({
        queue,
        does: `${doing} ${many(n, "message")} of ${visible(queue)}`,
        nothing: `Nothing was ${done}.`,
        total: n,
        run: async (told, stop) => {
          const results: Result[] = [];
          for (; results.length < n && !stop.aborted; told(results.length)) {
            const some = refs.slice(results.length, results.length + 500);
            results.push(...(await post<{ results: Result[] }>("v1/cancel", { refs: some })).results);
          }
          return counted(results.filter((r) => r.ok).length, n, done, results.flatMap((r) => r.error?.code ?? []));
        },
      }),
  });
}

function moveChosen(queue: string, chosen: Message[]): void {
  const n = chosen.length;
  ask({
    title: "Reschedule the chosen messages",
    text: <Chosen queue={queue} n={n}>{n === 1 ? "gets a new due time." : "get the same new due time."}</Chosen>,
    fields: (
      <label>
        New time <span class="faint">empty: now</span>
        <input name="due" type="datetime-local" step="1" value={toInput(Math.max(...chosen.map((m) => Date.parse(m.due))))} />
      </label>
    ),
    yes: `Reschedule ${count(n)}`,
    act: async (v) => {
      const t = fromInput(String(v.get("due")));
      const to = isNaN(t) ? { delay: "0s" } : { due: new Date(t).toISOString() };
      void later({
        queue,
        does: `Rescheduling ${many(n, "message")} of ${visible(queue)}`,
        nothing: "Nothing was rescheduled.",
        total: n,
        run: async (told, stop) => {
          let moved = 0;
          const codes: string[] = [];
          for (const m of chosen) {
            if (stop.aborted) break;
            try {
              await call("PATCH", `${at(queue, "messages", m.id)}?if_state=${m.state}`, to);
              moved++;
            } catch (err) {
              if (!(err instanceof Failure) || !(err.code in why)) throw new Error(`${many(moved, "message is", "messages are")} rescheduled; then: ${say(err)}`);
              codes.push(err.code);
            }
            told(moved + codes.length);
          }
          return counted(moved, n, isNaN(t) ? "ready" : `due ${exact(t, false)}`, codes);
        },
      });
    },
  });
}
