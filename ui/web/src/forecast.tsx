// How many messages of a queue fall due when, for the next minute up to the next year.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { at, get, list, now } from "./api";
import { bars } from "./chart";
import { Segments, Trouble } from "./parts";
import { useReading } from "./reading";
import { amend, route } from "./route";
import { can } from "./session";
import { changes } from "./store";
import { count, many } from "./text";
import { exact, tick, zone } from "./time";

// touch is whether the viewer points with a finger, which scrolls instead of dragging.
const touch = matchMedia("(pointer: coarse)");

const minute = 60e3;
const hour = 60 * minute;
const day = 24 * hour;

type Range = "1m" | "1h" | "6h" | "1d" | "7d" | "30d" | "1y" | "zoom";

// ranges are the spans to choose from, each with the length of a bar.
const ranges: Record<Exclude<Range, "zoom">, { span: number; step: number }> = {
  "1m": { span: minute, step: 1000 },
  "1h": { span: hour, step: minute },
  "6h": { span: 6 * hour, step: 5 * minute },
  "1d": { span: day, step: 15 * minute },
  "7d": { span: 7 * day, step: 2 * hour },
  "30d": { span: 30 * day, step: 8 * hour },
  "1y": { span: 365 * day, step: 5 * day },
};

interface Bars {
  from: number[];
  count: number[];
  step: number;
  name?: string; // of the range; none when zoomed
  cut?: boolean; // there are more than were counted
  overdue?: number; // due before the current minute
}

interface Forecast {
  step: string;
  overdue: number;
  buckets: { from: string; count: number }[];
}

const maxSteps = 10_000;

// steps are the possible lengths of a bar.
const steps = [1, 5, 15, 30, 60, 120, 360, 720, 1440, 7200].map((m) => m * minute);

async function read(queue: string, a: number, b: number, step: number, signal: AbortSignal): Promise<Bars> {
  if (step < minute) return readSeconds(queue, a, b, step, signal);
  const span = Math.max(step, Math.ceil((b - now()) / step) * step);
  const f = await get<Forecast>(`${at(queue, "forecast")}?step=${step / 1000}s&span=${span / 1000}s`, signal);
  const some = f.buckets.filter((x) => Date.parse(x.from) + step > a && Date.parse(x.from) < b);
  return { from: some.map((x) => Date.parse(x.from)), count: some.map((x) => x.count), step, overdue: f.overdue };
}

// readSeconds counts the listed messages of the next minute, since forecasts are by the minute.
async function readSeconds(queue: string, a: number, b: number, step: number, signal: AbortSignal): Promise<Bars> {
  const first = Math.floor(a / step) * step;
  const n = Math.ceil((b - first) / step);
  const out: Bars = { from: Array.from({ length: n }, (_, i) => first + i * step), count: new Array<number>(n).fill(0), step };
  const p = await list(queue, { state: "scheduled", to: new Date(b).toISOString(), limit: 1000 }, signal);
  for (const m of p.messages) {
    const i = Math.floor((Date.parse(m.due) - first) / step);
    if (i >= 0 && i < n) out.count[i]!++;
  }
  out.cut = p.next !== "";
  return out;
}

// fitted are the spans that a forecast may begin with: the first that has most of the messages.
const fitted: Exclude<Range, "zoom">[] = ["1h", "6h", "1d", "7d", "30d", "1y"];
const most = 0.75;

export function Forecast({ queue, pending }: { queue: string; pending: number }) {
  const query = route.value.query;
  const [fit, setFit] = useState(0);
  const asked = query.get("range") as Range | null;
  const range = asked ?? fitted[fit]!;
  const from = Date.parse(query.get("from") ?? "");
  const to = Date.parse(query.get("to") ?? "");
  const zoom = query.get("zoom")?.split("~").map((t) => Date.parse(t)) ?? [];
  const zoomed = range === "zoom" && zoom.length === 2 && zoom[0]! < zoom[1]!;
  const name = range !== "zoom" && range in ranges ? range : fitted[fit]!;
  const plan = zoomed ? null : ranges[name];
  const [data, setData] = useState<Bars | null>(null);
  const [error, setError] = useState<unknown>(null);
  const change = changes(queue).value;
  const turn = plan?.step === 1000 ? tick.value : Math.floor(tick.value / 30);

  useReading(`${range} ${asked} ${query.get("zoom")}`, `${change} ${turn}`, 1000, (stop) => {
    const a = zoomed ? zoom[0]! : now();
    const b = zoomed ? zoom[1]! : now() + plan!.span;
    const step = plan?.step ?? steps.find((s) => (b - a) / s <= 120 && (b - now()) / s <= maxSteps) ?? 5 * day;
    return read(queue, a, b, step, stop).then(
      (d) => {
        const further = !asked && fit < fitted.length - 1 && d.count.reduce((n, c) => n + c, 0) < most * pending;
        if (further) return setFit(fit + 1);
        setData({ ...d, name: plan ? name : undefined });
        setError(null);
      },
      (err) => {
        if (!stop.aborted) setError(err);
      },
    );
  });

  const pick = (a: number, b: number) => amend({ from: new Date(a).toISOString(), to: new Date(b).toISOString(), state: "", order: "" });
  const all = data ? data.count.reduce((n, c) => n + c, 0) : 0;
  const chosen = !isNaN(from) && !isNaN(to) && can("range");
  const among = data ? data.count.reduce((n, c, i) => (data.from[i]! + data.step > from && data.from[i]! < to ? n + c : n), 0) : 0;
  const when = data?.name ? `in the next ${data.name}` : "in the span shown";
  const zoomTo = () => amend({ range: "zoom", zoom: `${new Date(from).toISOString()}~${new Date(to).toISOString()}` });
  return (
    <section class="forecast" aria-labelledby="forecast-title">
      <div class="title">
        <h2 id="forecast-title">Forecast</h2>
        <span class="muted">
          {data?.overdue ? `${count(data.overdue)} overdue, ` : ""}
          {data && `${many(all, "message falls", "messages fall")} due ${when}${data.cut ? ", counted up to 1,000" : ""}`}
        </span>
        <Segments
          label="How far ahead"
          value={zoomed ? "zoom" : range}
          of={[...(Object.keys(ranges).map((r) => [r, r]) as [Range, string][]), ...(zoomed ? ([["zoom", "Zoomed"]] as [Range, string][]) : [])]}
          onPick={(r) => r !== "zoom" && amend({ range: r, zoom: "" })}
        />
      </div>
      <Trouble error={error} />
      <Chart data={data} chosen={chosen ? [from, to] : null} onPick={can("range") ? pick : undefined} says={data ? `Forecast: ${count(all)} messages ${when}` : "Forecast"} />
      <div class="bar picked">
        {chosen ? (
          <>
            <span>
              <strong>{count(among)}</strong> fall due {exact(from, false)} – {exact(to, false)}, listed below
            </span>
            {to - from >= 2 * minute && <button onClick={zoomTo}>Zoom in</button>}
            <button class="link" onClick={() => amend({ from: "", to: "" })}>
              Clear
            </button>
          </>
        ) : (
          <span class="faint">{can("range") ? `${touch.matches ? "Touch a bar" : "Drag over the bars"} to list those messages.` : ""}</span>
        )}
        {data && <AsTable data={data} />}
      </div>
    </section>
  );
}

function AsTable({ data }: { data: Bars }) {
  const some = data.from.map((t, i) => [t, data.count[i]!] as const).filter(([, n]) => n > 0);
  return (
    <details class="as-table">
      <summary>As a table</summary>
      <table>
        <thead>
          <tr>
            <th>From</th>
            <th class="num">Messages</th>
          </tr>
        </thead>
        <tbody>
          {data.overdue ? (
            <tr>
              <td>Overdue</td>
              <td class="num">{count(data.overdue)}</td>
            </tr>
          ) : null}
          {some.slice(0, 200).map(([t, n]) => (
            <tr key={t}>
              <td>{exact(t, false)}</td>
              <td class="num">{count(n)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function Chart({ data, chosen, onPick, says }: { data: Bars | null; chosen: [number, number] | null; onPick?: (a: number, b: number) => void; says: string }) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<{ u: uPlot; key: string; done: () => void } | null>(null);
  const latest = useRef({ data, onPick });
  latest.current = { data, onPick };
  const key = `${data?.step} ${zone.value}`;
  // Drawn with the title: an effect after the paint would replace the chart under a drag that has begun.
  useLayoutEffect(() => {
    if (!data || !box.current) return;
    const series: uPlot.AlignedData = [data.from.map((t) => t / 1000), data.count];
    if (chart.current && chart.current.key !== key) {
      chart.current.done();
      chart.current = null;
    }
    if (chart.current) chart.current.u.setData(series);
    else {
      chart.current = {
        key,
        ...bars(box.current, series, data.step / 1000, (a, b) => {
          const { data: d, onPick: p } = latest.current;
          if (!d || !p) return;
          // Whole bars are taken.
          const first = d.from.find((t) => t + d.step > a * 1000) ?? a * 1000;
          const end = [...d.from].reverse().find((t) => t < b * 1000);
          p(first, (end ?? b * 1000) + d.step);
        }),
      };
    }
  }, [data, key]);
  useLayoutEffect(() => {
    const u = chart.current?.u;
    if (!u) return;
    if (!chosen) {
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      return;
    }
    const edge = (t: number) => Math.min(u.over.clientWidth, Math.max(0, u.valToPos(t / 1000, "x")));
    const [a, b] = [edge(chosen[0]), edge(chosen[1])];
    u.setSelect({ left: a, top: 0, width: b - a, height: u.over.clientHeight }, false);
  }, [chosen?.[0], chosen?.[1], data]);
  useEffect(() => () => chart.current?.done(), []);
  return <div class="chart" ref={box} role="img" aria-label={says} />;
}
