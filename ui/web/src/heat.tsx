// A heat map of lateness over time: the darker, the more messages.
import { useEffect, useRef, useState } from "preact/hooks";
import { at, get } from "./api";
import { colour, dark } from "./chart";
import { Segments, Trouble } from "./parts";
import { useReading } from "./reading";
import { changes } from "./store";
import { count, many } from "./text";
import { exact, parseDuration, remembered, span, tick, zone } from "./time";

interface Trend {
  from: string;
  step: string;
  span: string;
  total: { acked: number; retried: number; died: number; lateness: { count: number; p50_ms: number | null; p99_ms: number | null; max_ms: number | null } };
  heat: { bounds_ms: number[]; cells: [number, number, number][] };
}

const range = remembered("heat", "15m", ["15m", "6h", "72h"] as const);
const steps = { "15m": "10s", "6h": "5m", "72h": "1h" };
const names = { "15m": "15m", "6h": "6h", "72h": "3d" };

// late formats a lateness.
export const late = (ms: number | null | undefined) => (ms === null || ms === undefined ? "–" : span(ms));

export function Heat({ queue }: { queue: string }) {
  const [data, setData] = useState<Trend | null>(null);
  const [error, setError] = useState<unknown>(null);
  const change = changes(queue).value;
  useReading(`${queue} ${range.value}`, `${change} ${Math.floor(tick.value / 10)}`, 2000, (stop) =>
    get<Trend>(`${at(queue, "trend")}?span=${range.value}&step=${steps[range.value]}`, stop).then(
      (d) => (setData(d), setError(null)),
      (err) => {
        if (!stop.aborted) setError(err);
      },
    ),
  );
  const total = data?.total;
  return (
    <section aria-labelledby="heat-title" class="heat">
      <div class="title">
        <h2 id="heat-title">Lateness</h2>
        <span class="muted">
          {total &&
            (total.lateness.count === 0
              ? `nothing was leased in the last ${names[range.value]}`
              : `p50 ${late(total.lateness.p50_ms)}, p99 ${late(total.lateness.p99_ms)}, at most ${late(total.lateness.max_ms)}; ${count(total.acked)} handled${total.retried ? `, ${count(total.retried)} retried` : ""}${total.died ? `, ${count(total.died)} died` : ""}`)}
        </span>
        <Segments label="How far back" value={range.value} of={Object.entries(names) as [keyof typeof names, string][]} onPick={(r) => (range.value = r)} />
      </div>
      <Trouble error={error} />
      {data && data.total.lateness.count > 0 && <Map data={data} />}
    </section>
  );
}

// frame is the range of buckets to draw: those in use, and at least up to 1 s.
function frame(data: Trend): [number, number] {
  const used = data.heat.cells.map((c) => c[1]);
  const second = data.heat.bounds_ms.findIndex((b) => b >= 1000);
  return [Math.min(...used, 2), Math.max(...used, second)];
}

const left = 52;
const bottom = 18;

function Map({ data }: { data: Trend }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [says, setSays] = useState("");
  const n = Math.round(parseDuration(data.span) / parseDuration(data.step));
  const [low, high] = frame(data);
  const step = parseDuration(data.step);
  const begin = Date.parse(data.from);
  const place = (c: HTMLCanvasElement) => ({ w: (c.clientWidth - left) / n, h: (c.clientHeight - bottom) / (high - low + 1) });

  useEffect(() => {
    const c = canvas.current!;
    const draw = () => {
      const ratio = devicePixelRatio;
      c.width = c.clientWidth * ratio;
      c.height = c.clientHeight * ratio;
      const g = c.getContext("2d")!;
      g.scale(ratio, ratio);
      const { w, h } = place(c);
      const most = Math.log1p(Math.max(...data.heat.cells.map((x) => x[2])));
      g.fillStyle = colour("--sunk");
      g.fillRect(left, 0, c.clientWidth - left, c.clientHeight - bottom);
      g.fillStyle = colour("--accent");
      for (const [i, b, count] of data.heat.cells) {
        g.globalAlpha = 0.18 + 0.82 * (Math.log1p(count) / most);
        g.fillRect(left + i * w, (high - b) * h, Math.max(1, w - 0.5), h);
      }
      g.globalAlpha = 1;
      g.fillStyle = colour("--muted");
      g.strokeStyle = colour("--line");
      g.font = `11px ${getComputedStyle(document.body).fontFamily}`;
      g.textAlign = "right";
      g.textBaseline = "middle";
      for (const ms of [1, 10, 100, 1000, 10_000, 60_000, 600_000, 3600_000]) {
        const b = data.heat.bounds_ms.findIndex((x) => x >= ms * 0.999);
        if (b < low || b > high) continue;
        const y = (high - b) * h;
        g.fillText(span(ms), left - 6, Math.max(6, y));
        g.beginPath();
        g.moveTo(left, y);
        g.lineTo(c.clientWidth, y);
        g.stroke();
      }
      g.textBaseline = "bottom";
      const marks = Math.max(1, Math.floor((c.clientWidth - left) / 160));
      for (let i = 0; i <= marks; i++) {
        g.textAlign = i === 0 ? "left" : i === marks ? "right" : "center";
        const text = exact(begin + (n * step * i) / marks, false);
        g.fillText(step >= 3600e3 ? text.slice(5, 16) : text.slice(11, 16), left + ((c.clientWidth - left) * i) / marks, c.clientHeight);
      }
    };
    draw();
    const resized = new ResizeObserver(draw);
    resized.observe(c);
    dark.addEventListener("change", draw);
    return () => {
      resized.disconnect();
      dark.removeEventListener("change", draw);
    };
  }, [data, zone.value]);

  const point = (e: MouseEvent) => {
    const c = canvas.current!;
    const { w, h } = place(c);
    const box = c.getBoundingClientRect();
    const i = Math.floor((e.clientX - box.left - left) / w);
    const b = high - Math.floor((e.clientY - box.top) / h);
    const cell = data.heat.cells.find((x) => x[0] === i && x[1] === b);
    const from = data.heat.bounds_ms[b - 1] ?? 0;
    setSays(cell ? `${exact(begin + i * step, false)}: ${many(cell[2], "message")} late by ${late(from)} to ${late(data.heat.bounds_ms[b])}` : "");
  };
  return (
    <>
      <canvas ref={canvas} role="img" aria-label="Heat map of the lateness" onMouseMove={point} onMouseLeave={() => setSays("")} />
      <p class="faint under">{says || "\u00a0"}</p>
    </>
  );
}
