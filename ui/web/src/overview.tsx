// All queues, those with problems first.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Coming, NextHour } from "./ahead";
import type { Queue } from "./api";
import { late } from "./heat";
import { Badge, Empty, Figure, Foreign, Segments, Since, Trouble, When } from "./parts";
import { kind, problems, Unread, useProblems, Wrong, type Problem } from "./problems";
import { amend, route, toDead, toQueue } from "./route";
import { pushTo } from "./actions";
import { mayAnywhere } from "./session";
import { Start } from "./start";
import { loaded, queues, trouble, version } from "./store";
import { count, many, rate, short } from "./text";
import { inView, lately, today, type Spark } from "./trends";
import { useWindow } from "./window";

type Column = "queue" | "scheduled" | "ready" | "leased" | "dead" | "next_due" | "oldest_ready" | "p99" | "acked_per_s";
type Only = "all" | "problems" | "paused";

const columns: [Column, string, string][] = [
  ["queue", "Queue", ""],
  ["scheduled", "Scheduled", "num"],
  ["ready", "Ready", "num"],
  ["leased", "Leased", "num"],
  ["dead", "Dead", "num"],
  ["oldest_ready", "Waiting for", "when wide"],
  ["p99", "Late p50, p99", "when wide"],
  ["acked_per_s", "Handled/s", "num wide"],
  ["next_due", "Next due", "when next"],
];

// empty is a queue that held something today.
const empty = (queue: string): Queue => ({ queue, scheduled: 0, ready: 0, leased: 0, dead: 0, finished: 0, next_due: null, oldest_ready: null, paused: false, gone: true });

// lateness and handled come from the last event, else from the trends of the last minutes.
const lateness = (q: Queue) => (q.trend?.lateness.p99_ms != null ? q.trend.lateness : lately.value.get(q.queue)?.lateness);
const handled = (q: Queue) => q.acked_per_s || lately.value.get(q.queue)?.rate || 0;

// value is what a column sorts by.
const value = (q: Queue, by: Column) => (by === "p99" ? (lateness(q)?.p99_ms ?? -1) : by === "acked_per_s" ? handled(q) : q[by]);

function compare(a: Queue, b: Queue, by: Column): number {
  const x = value(a, by);
  const y = value(b, by);
  if (typeof x === "number" && typeof y === "number") return y - x;
  if (by === "queue") return a.queue < b.queue ? -1 : 1;
  if (x === y) return 0;
  if (!x || !y) return x ? -1 : 1;
  return x < y ? -1 : 1;
}

export function Overview() {
  const query = route.value.query;
  const [filter, setFilter] = useState(query.get("find") ?? "");
  const by = (query.get("by") as Column) || "queue";
  const down = query.get("down") === "1";
  const only = (query.get("only") as Only) || "all";
  const v = version.value;
  const all = useMemo(() => [...queues.values(), ...[...today.value].filter((q) => !queues.has(q)).map(empty)], [v, loaded.value, today.value]);
  useProblems();
  const wrong = problems.value;
  const worst = useMemo(() => {
    const of = new Map<string, Problem>();
    for (const p of wrong) if (p.queue && !of.has(p.queue)) of.set(p.queue, p);
    return of;
  }, [wrong]);
  const shown = useMemo(() => {
    const want = filter.trim().toLowerCase();
    const some = all.filter(
      (q) => (want === "" || q.queue.toLowerCase().includes(want)) && (only === "all" || (only === "paused" ? q.paused : worst.has(q.queue))),
    );
    some.sort((a, b) => (compare(a, b, by) || (a.queue < b.queue ? -1 : 1)) * (down ? -1 : 1));
    return some;
  }, [all, worst, filter, only, by, down]);

  if (!loaded.value) return trouble.value ? <Trouble error={trouble.value} /> : <p class="muted pad">Loading the queues…</p>;
  const sum = (of: "scheduled" | "ready" | "leased" | "dead") => all.reduce((n, q) => n + q[of], 0);
  const dead = sum("dead");
  const sort = (c: Column) => amend({ by: c === "queue" ? "" : c, down: by === c && !down ? "1" : "" });
  return (
    <>
      <div class="title">
        <h1>Queues</h1>
        <span class="muted">{count(all.length)}</span>
        <div class="actions">{mayAnywhere("push") && <button onClick={() => pushTo("")}>Push a message…</button>}</div>
      </div>
      {trouble.value != null && <Trouble error={trouble.value} />}
      {all.length > 0 && (
        <>
          <NextHour />
          <dl class="figures">
            <Figure name="Scheduled">{count(sum("scheduled"))}</Figure>
            <Figure name="Ready">{count(sum("ready"))}</Figure>
            <Figure name="Leased">{count(sum("leased"))}</Figure>
            <Figure name="Dead" tone={dead ? "bad" : ""}>
              {dead ? <a href={toDead()}>{count(dead)}</a> : 0}
            </Figure>
          </dl>
        </>
      )}
      <Unread />
      {wrong.length > 0 && <Worst all={wrong} />}
      {all.length === 0 ? (
        <Start />
      ) : (
        <>
          <div class="bar">
            <label class="find">
              <span class="offscreen">Filter queues by name</span>
              <input type="search" placeholder="Filter queues" value={filter} spellcheck={false} onInput={(e) => (setFilter(e.currentTarget.value), amend({ find: e.currentTarget.value }))} />
              <kbd aria-hidden="true">/</kbd>
            </label>
            <Segments
              label="Which queues"
              value={only}
              of={[
                ["all", "All"],
                ["problems", `Problems ${worst.size || ""}`],
                ["paused", "Paused"],
              ]}
              onPick={(o) => amend({ only: o === "all" ? "" : o })}
            />
            <span class="muted count">{shown.length !== all.length && `${count(shown.length)} shown`}</span>
          </div>
          <Table rows={shown} worst={worst} by={by} down={down} sort={sort} />
          {shown.length === 0 && <Empty title="No queue matches." />}
        </>
      )}
    </>
  );
}

function Worst({ all: list }: { all: Problem[] }) {
  const [whole, setWhole] = useState(false);
  const most = whole ? 100 : 5;
  return (
    <section class="worst" aria-labelledby="worst-title">
      <h2 id="worst-title">Needs attention</h2>
      <ul>
        {list.slice(0, most).map((p) => (
          <li key={`${p.problem} ${p.queue} ${p.queue ? "" : p.message}`} data-row>
            <Badge kind={kind(p)} />
            {p.queue ? (
              <a href={p.problem === "deaths" ? toDead(p.queue) : toQueue(p.queue)}>
                <Foreign text={p.queue} />
              </a>
            ) : (
              <span />
            )}
            <Wrong p={p} />
          </li>
        ))}
      </ul>
      {list.length > most && (
        <button class="link" onClick={() => setWhole(true)}>
          {whole ? `The table has the other ${count(list.length - most)}` : `${many(list.length - most, "more", "more")}`}
        </button>
      )}
    </section>
  );
}

const rowHeight = () => (innerWidth < 720 ? 60 : 40);

function Table({ rows, worst, by, down, sort }: { rows: Queue[]; worst: Map<string, Problem>; by: Column; down: boolean; sort: (c: Column) => void }) {
  const body = useRef<HTMLDivElement>(null);
  const height = rowHeight();
  const [from, to] = useWindow(body, rows.length, height);
  useEffect(() => {
    inView.value = rows.slice(from, to).map((q) => q.queue);
  }, [rows, from, to]);
  return (
    <div class="grid queues" role="table" aria-label="Queues" aria-rowcount={rows.length + 1}>
      <div role="rowgroup" class="heads">
        <div role="row" class="row">
          {columns.map(([c, name, kind]) => (
            <div key={c} role="columnheader" class={kind} aria-sort={by === c ? (down ? "descending" : "ascending") : "none"}>
              <button onClick={() => sort(c)}>
                {name}
                <i aria-hidden="true">{by === c ? (down ? " ↑" : " ↓") : ""}</i>
              </button>
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="rows" ref={body} style={{ height: `${rows.length * height}px` }}>
        {rows.slice(from, to).map((q, i) => (
          <div key={q.queue} role="row" class="row" data-row aria-rowindex={from + i + 2} style={{ top: `${(from + i) * height}px`, height: `${height}px` }}>
            <div role="cell" class="name">
              <a href={toQueue(q.queue)}>
                <Foreign text={q.queue} />
              </a>
              {worst.has(q.queue) ? <Badge kind={kind(worst.get(q.queue)!)} /> : (q.paused || q.gone) && <Badge kind={q.paused ? "paused" : "empty"} />}
            </div>
            <Num n={q.scheduled} name="scheduled" />
            <Num n={q.ready} name="ready" />
            <Num n={q.leased} name="leased" />
            <Num n={q.dead} name="dead" tone="bad" />
            <div role="cell" class="when wide">{q.oldest_ready ? <Since t={q.oldest_ready} /> : <span class="faint">–</span>}</div>
            <div role="cell" class="when wide">
              <Late of={lateness(q)} />
            </div>
            <div role="cell" class="num wide">
              {handled(q) ? rate(handled(q)) : <span class="faint">–</span>} <Line all={lately.value.get(q.queue)?.spark} />
            </div>
            <div role="cell" class="when next">
              <Coming queue={q.queue} /> <When t={q.next_due} />
            </div>
          </div>
        ))}
      </div>
    </div>
  );
}

function Late({ of }: { of: { p50_ms: number | null; p99_ms: number | null } | undefined }) {
  if (of?.p99_ms == null) return <span class="faint">–</span>;
  return (
    <>
      {late(of.p50_ms)}, {late(of.p99_ms)}
    </>
  );
}

// Line draws how many messages were pushed and handled in the last minutes.
function Line({ all }: { all: Spark | undefined }) {
  if (!all) return <svg class="spark" aria-hidden="true" />;
  const most = Math.max(1, ...all.acked, ...all.pushed);
  const path = (v: number[]) => "M" + v.map((n, i) => `${((i / Math.max(1, v.length - 1)) * 72).toFixed(1)} ${(19 - (n / most) * 17).toFixed(1)}`).join("L");
  return (
    <svg class="spark" viewBox="0 0 72 20" aria-hidden="true">
      <title>Pushed and handled in the last 15 minutes</title>
      <path class="pushed" d={path(all.pushed)} />
      <path d={path(all.acked)} />
    </svg>
  );
}

function Num({ n, name, tone = "" }: { n: number; name: string; tone?: string }) {
  return (
    <div role="cell" class={`num ${n === 0 ? "faint" : tone}`} title={n >= 1e4 ? `${count(n)} ${name}` : undefined}>
      {short(n)} <small>{name}</small>
    </div>
  );
}
