// Charts by uPlot, in the colours of the page.
import uPlot from "uplot";
import { short } from "./text";
import { zone } from "./time";

export const dark = matchMedia("(prefers-color-scheme: dark)");

export const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function axis(size?: number): uPlot.Axis {
  const at = () => colour("--muted");
  const font = "11px " + getComputedStyle(document.body).fontFamily;
  return { stroke: at, font, grid: { stroke: () => colour("--line"), width: 1 }, ticks: { show: false }, ...(size ? { size } : {}) };
}

const twoDigits = (n: number) => String(n).padStart(2, "0");

// times are the labels of a time axis, as short as they can be.
function times(u: uPlot, marks: number[], _axis: number, _space: number, increment: number): string[] {
  let before = "";
  return marks.map((t) => {
    const d = u.axes && zone.value === "utc" ? uPlot.tzDate(new Date(t * 1000), "Etc/UTC") : new Date(t * 1000);
    const date = `${d.toLocaleString("en-GB", { month: "short" })} ${d.getDate()}`;
    const time = `${twoDigits(d.getHours())}:${twoDigits(d.getMinutes())}${increment < 60 ? ":" + twoDigits(d.getSeconds()) : ""}`;
    const fresh = date !== before;
    before = date;
    if (increment >= 86400) return date;
    return fresh ? `${time}\n${date}` : time;
  });
}

// fit keeps a chart as wide as its container and in the current colours.
function fit(u: uPlot, box: HTMLElement): () => void {
  const resized = new ResizeObserver(() => u.setSize({ width: box.clientWidth, height: box.clientHeight }));
  const redraw = () => u.redraw(false);
  resized.observe(box);
  dark.addEventListener("change", redraw);
  return () => {
    resized.disconnect();
    dark.removeEventListener("change", redraw);
    u.destroy();
  };
}

// bars draws counts over time, step seconds each, and reports the range that is dragged over.
export function bars(box: HTMLElement, data: uPlot.AlignedData, step: number, onPick: (from: number, to: number) => void): { u: uPlot; done: () => void } {
  const hint = document.createElement("div");
  hint.className = "hint";
  let dragged = false;
  const options: uPlot.Options = {
    width: box.clientWidth,
    height: box.clientHeight,
    padding: [12, 28, 0, 0], // room for half of the last label
    legend: { show: false },
    tzDate: (t) => (zone.value === "utc" ? uPlot.tzDate(new Date(t * 1000), "Etc/UTC") : new Date(t * 1000)),
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false, dist: 4 } },
    scales: { x: { range: (u) => [u.data[0][0]!, u.data[0][u.data[0].length - 1]! + step] }, y: { range: (_u, _min, max) => [0, Math.max(4, (max ?? 0) * 1.1)] } },
    axes: [
      { ...axis(40), grid: { show: false }, values: times, space: 72 },
      { ...axis(44), values: (_u, v) => v.map((n) => (Number.isInteger(n) ? short(n) : "")), space: 28 },
    ],
    series: [{}, { paths: uPlot.paths.bars!({ size: [0.86, 48], align: 1 }), fill: () => colour("--accent"), stroke: () => colour("--accent"), width: 0, points: { show: false } }],
    hooks: {
      setSelect: [
        (u) => {
          if (u.select.width < 3) return;
          dragged = true;
          onPick(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
        },
      ],
      setCursor: [
        (u) => {
          const left = u.cursor.left ?? -1;
          const t = u.posToVal(left, "x");
          const i = u.data[0].findIndex((from) => t >= from && t < from + step);
          hint.hidden = left < 0 || i < 0;
          if (hint.hidden) return;
          const [label] = times(u, [u.data[0][i]!], 0, 0, Math.min(step, 3600));
          hint.textContent = `${label!.replace("\n", " ")}: ${u.data[1]![i]}`;
          hint.style.left = `${Math.min(left, u.over.clientWidth - 130)}px`;
        },
      ],
    },
  };
  const u = new uPlot(options, data, box);
  u.over.append(hint);
  hint.hidden = true;
  u.over.addEventListener("click", (e) => {
    if (!dragged) {
      const t = u.posToVal(e.clientX - u.over.getBoundingClientRect().left, "x");
      const i = u.data[0].findIndex((from) => t >= from && t < from + step);
      if (i >= 0 && u.data[1]![i]) onPick(u.data[0][i]! + step / 4, u.data[0][i]! + step / 2);
    }
    dragged = false;
  });
  return { u, done: fit(u, box) };
}
