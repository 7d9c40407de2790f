// What falls due in the next hour, in all queues together and in each.
import { signal } from "@preact/signals";
import { get } from "./api";
import { useReading } from "./reading";
import { can } from "./session";
import { count, many } from "./text";
import { exact, tick } from "./time";

interface Forecasts {
  from: string | null; // when the first minute begins
  counts: number[]; // one for each minute
  queues: { queue: string; counts: number[] }[];
  more: boolean;
}

interface Ahead extends Forecasts {
  of: Map<string, number[]>;
}

const ahead = signal<Ahead | null>(null);

const none: Ahead = { from: null, counts: [], queues: [], more: false, of: new Map() };

const sum = (all: number[]) => all.reduce((n, c) => n + c, 0);

// NextHour is what falls due in all queues.
export function NextHour() {
  useReading("ahead", Math.floor(tick.value / 15), 3000, async (stop) => {
    if (!can("forecast")) return;
    try {
      const f = await get<Forecasts>("v1/forecast", stop);
      ahead.value = { ...f, of: new Map(f.queues.map((q) => [q.queue, q.counts])) };
    } catch {
      // The events say that the server is away.
    }
  });
  if (!can("forecast")) return null;
  const { from, counts, queues, more } = ahead.value ?? none;
  const most = Math.max(0, ...counts);
  const all = sum(counts);
  const begin = Date.parse(from ?? "");
  return (
    <section class="next-hour" aria-labelledby="next-hour-title">
      <div class="title">
        <h2 id="next-hour-title">Due in the next hour</h2>
        <span class="muted">
          {ahead.value && `${many(all, "message")}${all ? ` in ${many(queues.length, "queue")}, at most ${count(most)} a minute` : ""}${more ? "; of the queues that are due first" : ""}`}
        </span>
      </div>
      <svg viewBox={`0 0 ${counts.length || 60} 100`} preserveAspectRatio="none" role="img" aria-label={`${many(all, "message")} in the next hour`}>
        {counts.map((n, i) =>
          n === 0 ? null : (
            <rect key={i} x={i + 0.1} width={0.8} y={100 - (n / most) * 98} height={(n / most) * 98}>
              <title>{`${exact(begin + i * 60e3, false)}: ${many(n, "message")}`}</title>
            </rect>
          ),
        )}
      </svg>
      <p class="scale faint" aria-hidden="true">
        <span>now</span>
        <span>15m</span>
        <span>30m</span>
        <span>45m</span>
        <span>1h</span>
      </p>
    </section>
  );
}

// Coming draws what falls due in a queue, two minutes a bar.
export function Coming({ queue }: { queue: string }) {
  const counts = ahead.value?.of.get(queue);
  if (!counts) return <svg class="spark" aria-hidden="true" />;
  const bars = counts.flatMap((n, i) => (i % 2 ? [] : [n + (counts[i + 1] ?? 0)]));
  const most = Math.max(...bars);
  const path = bars.map((n, i) => (n ? `M${(i + 0.5) * 2.4} 20V${(18 - (n / most) * 16).toFixed(1)}` : "")).join("");
  return (
    <svg class="spark coming" viewBox="0 0 72 20" role="img" aria-label={`${many(sum(counts), "message falls", "messages fall")} due in the next hour`}>
      <title>{`${many(sum(counts), "message falls", "messages fall")} due in the next hour`}</title>
      <path d={path} />
    </svg>
  );
}
