// One queue: its forecast, lateness and messages.
import { useEffect, useState } from "preact/hooks";
import type { Queue, State } from "./api";
import * as actions from "./actions";
import { act } from "./dialog";
import { Forecast } from "./forecast";
import { Heat } from "./heat";
import { Messages } from "./messages";
import { Badge, Figure, Foreign, Since, Tabs, Trouble, When } from "./parts";
import { kind, problems, Unread, useProblems, Wrong } from "./problems";
import { amend, route, toQueues } from "./route";
import { can, info, may } from "./session";
import { queues, refresh, trouble, version } from "./store";
import { count, rate, short } from "./text";

const tabs: [State, string][] = [
  ["scheduled", "Scheduled"],
  ["ready", "Ready"],
  ["leased", "Leased"],
  ["dead", "Dead"],
  ["finished", "Finished"],
];

// held is how many messages of a queue a state lists.
const held = (q: Queue, s: State) => (s === "finished" ? q.history ?? 0 : q[s]);

export function QueuePage({ queue }: { queue: string }) {
  void version.value;
  useProblems();
  const [error, setError] = useState<unknown>(null);
  useEffect(() => void refresh(queue).catch(setError), [queue]);
  const q = queues.get(queue);
  const query = route.value.query;
  const state = (query.get("state") as State) || "scheduled";
  if (!q) return error ? <Trouble error={error} again={() => (setError(null), void refresh(queue).catch(setError))} /> : <p class="muted pad">Loading…</p>;
  const wrong = problems.value.filter((p) => p.queue === queue);
  const operate = may(queue, "operate");
  return (
    <>
      <nav class="crumbs" aria-label="Where">
        <a href={toQueues()}>Queues</a>
      </nav>
      <div class="title">
        <h1>
          <Foreign text={queue} />
        </h1>
        {wrong[0] ? <Badge kind={kind(wrong[0])} /> : q.paused && <Badge kind="paused" />}
        <div class="actions">
          {may(queue, "push") && <button onClick={() => actions.pushTo(queue)}>Push…</button>}
          {operate && can("pause") && (q.paused ? <button onClick={() => actions.resume(queue)}>Resume…</button> : <button onClick={() => actions.pause(queue)}>Pause…</button>)}
          {can("settings") && <button onClick={() => void act(() => actions.settings(queue, operate))}>Settings…</button>}
          {operate && can("purge") && (
            <button class="quiet-danger" onClick={() => void act(() => actions.purge(queue))}>
              Purge…
            </button>
          )}
        </div>
      </div>
      {q.paused && (
        <p class="notice">
          Paused{q.paused_until ? <> until <When t={q.paused_until} /></> : ""}. Workers get no messages; pushes and settlements still work.
        </p>
      )}
      {wrong.map((p) => (
        <p key={p.problem} class="notice">
          <Wrong p={p} />
        </p>
      ))}
      {trouble.value != null && <Trouble error={trouble.value} />}
      <Unread />
      <dl class="figures slim">
        {!can("list") && (
          <>
            <Figure name="Scheduled">{count(q.scheduled)}</Figure>
            <Figure name="Ready">{count(q.ready)}</Figure>
            <Figure name="Leased">{count(q.leased)}</Figure>
            <Figure name="Dead" tone={q.dead ? "bad" : ""}>{count(q.dead)}</Figure>
          </>
        )}
        {q.finished > 0 && <Figure name="Remembered" hint="keys that are remembered after their messages ended">{count(q.finished)}</Figure>}
        <Figure name="Next due">
          <When t={q.next_due} />
        </Figure>
        <Figure name="Waiting for" hint="the oldest ready message">{q.oldest_ready ? <Since t={q.oldest_ready} /> : <span class="faint">–</span>}</Figure>
        {q.acked_per_s !== undefined && <Figure name="Handled/s" hint="in the last minute">{rate(q.acked_per_s)}</Figure>}
      </dl>
      <Charts queue={queue} pending={q.scheduled} />
      {can("list") && (
        <section aria-labelledby="messages-title">
          <h2 id="messages-title" class="offscreen">
            Messages
          </h2>
          <Tabs
            label="States"
            value={state}
            of={tabs.filter(([s]) => s !== "finished" || can("history")).map(([s, name]) => [
              s,
              <>
                {name} <small>{short(held(q, s))}</small>
              </>,
            ])}
            onPick={(s) => amend({ state: s === "scheduled" ? "" : s, from: "", to: "", order: "", error: "", ending: "" })}
          />
          <Messages key={state} queue={queue} state={state} total={held(q, state)} />
        </section>
      )}
    </>
  );
}

// Charts shows what is to come and what was late, on narrow pages when asked.
function Charts({ queue, pending }: { queue: string; pending: number }) {
  const query = route.value.query;
  const [open, setOpen] = useState(innerWidth >= 720 || ["from", "range", "zoom"].some((name) => query.has(name)));
  const trends = info.value?.trends;
  if (!can("forecast") && !trends) return null;
  if (!open)
    return (
      <button class="link" onClick={() => setOpen(true)}>
        Forecast and lateness
      </button>
    );
  return (
    <div class="charts">
      {can("forecast") && <Forecast key={queue} queue={queue} pending={pending} />}
      {trends && <Heat queue={queue} />}
    </div>
  );
}
