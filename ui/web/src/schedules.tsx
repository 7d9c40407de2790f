// The schedules of the store, and one of them.
import { useMemo, useState } from "preact/hooks";
import { get, now, schedule, type Schedule, type Times } from "./api";
import { Badge, Empty, Figure, Foreign, Segments, Trouble, When } from "./parts";
import { useReading } from "./reading";
import { amend, route, toMessage, toQueue, toSchedule, toSchedules } from "./route";
import * as change from "./schedule_actions";
import { may, mayAnywhere } from "./session";
import { count, many } from "./text";
import { exact, inZone, span, tick, zone } from "./time";

const lateAfter = 30e3;

// condition is what a schedule is shown as; the first ones need someone's attention.
const conditions = ["failing", "overdue", "paused", "active", "ended"] as const;
function condition(s: Schedule): (typeof conditions)[number] {
  if (s.error) return "failing";
  if (s.next && Date.parse(s.next) < now() - lateAfter) return "overdue";
  return s.state;
}

// catchUps say what happens to instants that were missed.
export const catchUps = { last: "the last one fires", skip: "none fires", all: "all fire" };

interface Page {
  schedules: Schedule[];
  next: string;
}

export function Schedules() {
  const [page, setPage] = useState<Page | null>(null);
  const [error, setError] = useState<unknown>(null);
  const find = route.value.query.get("find") ?? "";
  useReading("schedules", Math.floor(tick.value / 3), 3000, (stop) =>
    get<Page>("v1/schedules?limit=1000", stop).then(
      (p) => (setPage(p), setError(null)),
      (err) => {
        if (!stop.aborted) setError(err);
      },
    ),
  );
  const some = useMemo(() => {
    const want = find.trim().toLowerCase();
    const all = (page?.schedules ?? []).filter((s) => [s.name, s.message.queue, s.spec].some((text) => text.toLowerCase().includes(want)));
    return all.sort((a, b) => conditions.indexOf(condition(a)) - conditions.indexOf(condition(b)) || Date.parse(a.next ?? "") - Date.parse(b.next ?? "") || (a.name < b.name ? -1 : 1));
  }, [page, find]);
  return (
    <>
      <div class="title">
        <h1>Schedules</h1>
        <span class="muted">{page && `${count(page.schedules.length)}${page.next ? ", and there are more" : ""}`}</span>
        <div class="actions">{mayAnywhere("push") && <button onClick={() => change.edit(null)}>New…</button>}</div>
      </div>
      <div class="bar">
        <label class="find">
          <span class="offscreen">Filter schedules by name, queue or expression</span>
          <input type="search" placeholder="Name, queue or expression" value={find} spellcheck={false} onInput={(e) => amend({ find: e.currentTarget.value })} />
          <kbd aria-hidden="true">/</kbd>
        </label>
      </div>
      <Trouble error={error} />
      {some.length > 0 ? (
        <>
          <Line all={some} />
          <Table all={some} />
        </>
      ) : page ? (
        <Empty title={find ? "No schedule matches." : "There are no schedules."}>{!find && "A schedule pushes a message again and again, such as each night at two."}</Empty>
      ) : (
        !error && <p class="muted pad">Loading…</p>
      )}
    </>
  );
}

const spans = [["1h", "Hour"], ["24h", "Day"], ["168h", "Week"]] as const;
const bins = 60;

// Line shows when schedules fire next.
function Line({ all }: { all: Schedule[] }) {
  const [within, setWithin] = useState<(typeof spans)[number][0]>("24h");
  void tick.value;
  const size = parseInt(within) * 3600e3;
  const start = now();
  const names: string[][] = Array.from({ length: bins }, () => []);
  for (const s of all) {
    const at = s.next ? Math.max(0, Date.parse(s.next) - start) : size;
    if (at < size) names[Math.floor((at / size) * bins)]!.push(s.name);
  }
  const most = Math.max(1, ...names.map((n) => n.length));
  const total = names.reduce((n, some) => n + some.length, 0);
  return (
    <figure class="line">
      <figcaption>
        {many(total, "schedule fires", "schedules fire")} within <Segments label="Span" value={within} of={spans} onPick={setWithin} />
      </figcaption>
      <svg viewBox={`0 0 ${bins} 12`} preserveAspectRatio="none" role="img" aria-label={`When schedules fire next: ${total} within ${within}`}>
        <line x1="0" x2={bins} y1="12" y2="12" />
        {names.map(
          (some, i) =>
            some.length > 0 && (
              <rect key={i} x={i + 0.1} width="0.8" y={12 - Math.max(2, (12 * some.length) / most)} height="12">
                <title>{`${exact(start + (i * size) / bins, false)}: ${some.slice(0, 8).join(", ")}${some.length > 8 ? ` and ${some.length - 8} more` : ""}`}</title>
              </rect>
            ),
        )}
      </svg>
      <div class="ends">
        <span>now</span>
        <span>in {within === "168h" ? "7d" : within}</span>
      </div>
    </figure>
  );
}

function Table({ all }: { all: Schedule[] }) {
  return (
    <div class="scroll">
      <table class="schedules">
        <thead>
          <tr>{["Schedule", "When", "Queue", "Next"].map((h) => <th key={h}>{h}</th>)}</tr>
        </thead>
        <tbody>
          {all.map((s) => (
            <tr key={s.name}>
              <td>
                <a href={toSchedule(s.name)}>
                  <Foreign text={s.name} />
                </a>{" "}
                {condition(s) !== "active" && <Badge kind={condition(s)} />}
                {s.error && <small><Foreign text={s.error} /></small>}
              </td>
              <td class="mono">
                <Foreign text={s.spec} />
                {s.zone && <small class="muted">{s.zone}</small>}
              </td>
              <td>
                <a href={toQueue(s.message.queue)}>
                  <Foreign text={s.message.queue} />
                </a>
              </td>
              <td><When t={s.next} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function SchedulePage({ name }: { name: string }) {
  const [s, setSchedule] = useState<Schedule | null>(null);
  const [times, setTimes] = useState<Times | null>(null);
  const [error, setError] = useState<unknown>(null);
  const read = (stop?: AbortSignal) =>
    Promise.all([get<Schedule>(schedule(name), stop), get<Times>(schedule(name, "next?n=10"), stop)]).then(
      ([got, next]) => (setSchedule(got), setTimes(next), setError(null)),
      (err) => {
        if (!stop?.aborted) setError(err);
      },
    );
  useReading(`schedule ${name}`, Math.floor(tick.value / 2), 2000, read);
  const again = () => void read();
  const crumbs = (
    <nav class="crumbs" aria-label="Where">
      <a href={toSchedules()}>Schedules</a>
    </nav>
  );
  if (!s || (error && !times)) return <>{crumbs}{error ? <Trouble error={error} again={again} /> : <p class="muted pad">Loading…</p>}</>;
  const push = may(s.message.queue, "push");
  const run = push || may(s.message.queue, "operate");
  return (
    <>
      {crumbs}
      <div class="title">
        <h1>
          <Foreign text={s.name} />
        </h1>
        {condition(s) !== "active" && <Badge kind={condition(s)} />}
        <div class="actions">
          {run && <button onClick={() => change.trigger(s, again)}>Trigger…</button>}
          {run && (s.state === "paused" ? <button onClick={() => change.resume(s, again)}>Resume</button> : <button onClick={() => change.pause(s, again)}>Pause</button>)}
          {push && <button onClick={() => change.edit(s, again)}>Edit…</button>}
          {push && (
            <button class="quiet-danger" onClick={() => change.remove(s)}>
              Remove…
            </button>
          )}
        </div>
      </div>
      <Trouble error={error} again={again} />
      {s.error && <p class="notice">It could not fire, and is tried again: <Foreign text={s.error} /></p>}
      <dl class="figures slim">
        <Figure name="When"><Foreign class="mono" text={s.spec} /></Figure>
        <Figure name="Zone">{s.zone || "UTC"}</Figure>
        <Figure name="Queue"><a href={toQueue(s.message.queue)}><Foreign text={s.message.queue} /></a></Figure>
        <Figure name="When missed">{catchUps[s.catch_up ?? "last"]}</Figure>
        {s.jitter && <Figure name="Jitter">{s.jitter}</Figure>}
        {s.start && <Figure name="Start"><When t={s.start} /></Figure>}
        {s.end && <Figure name="End"><When t={s.end} /></Figure>}
      </dl>
      <section class="pair" aria-label="Times and runs">
        <div>
          <h2>Next</h2>
          {times?.explain.map((line) => <p key={line} class="muted"><Foreign text={line} /></p>)}
          {s.state === "paused" && <p class="notice">Paused: these times do not fire until it is resumed.</p>}
          <Instants times={times?.next ?? []} of={s.zone || "UTC"} />
        </div>
        <div>
          <h2>Last runs</h2>
          <Runs s={s} />
        </div>
      </section>
    </>
  );
}

// Instants lists times in the viewer's zone and in the schedule's.
export function Instants({ times, of }: { times: string[]; of: string }) {
  void zone.value;
  if (times.length === 0) return <p class="faint">It does not fire any more.</p>;
  return (
    <table class="instants">
      <thead>
        <tr>{[zone.value === "utc" ? "UTC" : "Your time", of].map((h) => <th key={h}>{h}</th>)}</tr>
      </thead>
      <tbody>
        {times.map((t) => (
          <tr key={t}>
            <td class="mono"><time dateTime={t}>{exact(t, false)}</time></td>
            <td class="mono">{inZone(t, of)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Runs({ s }: { s: Schedule }) {
  const runs = s.runs ?? [];
  if (runs.length === 0) return <p class="faint">It has not fired yet.</p>;
  return (
    <div class="scroll">
      <table class="runs">
        <thead>
          <tr>{["Instant", "Outcome", "Late", "Ran"].map((h) => <th key={h}>{h}</th>)}</tr>
        </thead>
        <tbody>
          {runs.map((r) => (
            <tr key={r.key}>
              <td>
                <a href={toMessage(s.message.queue, r.id)}><When t={r.instant} /></a>
                {r.manual && <small class="muted">triggered</small>}
              </td>
              <td>
                <Badge kind={r.state === "finished" ? (r.ending === "acked" ? "handled" : (r.ending ?? "gone")) : (r.state ?? "gone")} />
                {r.error && <small><Foreign text={r.error} /></small>}
              </td>
              <td>{r.late ? span(Math.max(0, Date.parse(r.started!) - Date.parse(r.manual ? r.pushed : r.instant))) : "–"}</td>
              <td>{r.started && r.ended ? span(Date.parse(r.ended) - Date.parse(r.started)) : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
