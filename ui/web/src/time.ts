// Formatting and parsing of times and durations.
import { effect, signal } from "@preact/signals";
import { now } from "./api";

// remembered is a choice of the viewer that is kept in the browser.
export function remembered<T extends string>(name: string, first: T, known: readonly T[]) {
  let start: T = first;
  try {
    const kept = localStorage.getItem("tarry." + name) as T | null;
    if (kept && known.includes(kept)) start = kept;
  } catch {
    // Storage may be forbidden. Then the choice lasts as long as the page.
  }
  const s = signal<T>(start);
  effect(() => {
    try {
      localStorage.setItem("tarry." + name, s.value);
    } catch {
      // As above.
    }
  });
  return s;
}

export const zone = remembered("zone", "local", ["local", "utc"] as const);
export const clock = remembered("times", "relative", ["relative", "exact"] as const);

// tick changes every second, for relative times.
export const tick = signal(0);
setInterval(() => {
  if (!document.hidden) tick.value++;
}, 1000);
addEventListener("visibilitychange", () => tick.value++);

const two = (n: number) => String(n).padStart(2, "0");

// exact formats a time in the viewer's zone or in UTC, to the millisecond.
export function exact(t: string | number, millis = true): string {
  const d = new Date(t);
  if (isNaN(d.getTime())) return "";
  const utc = zone.value === "utc";
  const [y, mo, day] = utc ? [d.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate()] : [d.getFullYear(), d.getMonth(), d.getDate()];
  const [h, m, s] = utc ? [d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds()] : [d.getHours(), d.getMinutes(), d.getSeconds()];
  const ms = millis ? "." + String(d.getMilliseconds()).padStart(3, "0") : "";
  return `${y}-${two(mo + 1)}-${two(day)} ${two(h)}:${two(m)}:${two(s)}${ms}${utc ? " UTC" : ""}`;
}

// inZone formats a time in a zone, with the day of the week.
export function inZone(t: string, timeZone: string): string {
  try {
    const form = new Intl.DateTimeFormat("en-CA", { timeZone, weekday: "short", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
    const part = Object.fromEntries(form.formatToParts(new Date(t)).map((p) => [p.type, p.value]));
    return `${part.weekday} ${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second}`;
  } catch {
    return "–"; // the browser does not know the zone
  }
}

const units: [string, number][] = [
  ["y", 365 * 86400e3],
  ["d", 86400e3],
  ["h", 3600e3],
  ["m", 60e3],
  ["s", 1e3],
];

// span formats a duration in its two largest units, as the API and its fields write them.
export function span(ms: number): string {
  ms = Math.abs(ms);
  if (ms < 1000) return `${ms < 10 ? +ms.toFixed(1) : Math.round(ms)}ms`;
  if (ms < 10e3) return `${+(ms / 1000).toFixed(1)}s`;
  for (let i = 0; i < units.length; i++) {
    const [name, size] = units[i]!;
    if (ms < size) continue;
    const whole = Math.floor(ms / size);
    const next = units[i + 1];
    const rest = next ? Math.floor((ms - whole * size) / next[1]) : 0;
    return rest > 0 && next && whole < 100 ? `${whole}${name}${rest}${next[0]}` : `${whole}${name}`;
  }
  return "0s";
}

// relative formats a time as seen from now: in 5m, 3s ago.
export function relative(t: string | number): string {
  const d = new Date(t).getTime() - now();
  if (Math.abs(d) < 1000) return "now";
  const whole = Math.abs(d) < 10e3 ? Math.round(d / 1000) * 1000 : d;
  const text = Math.abs(d) < 10e3 ? `${Math.abs(whole / 1000)}s` : span(whole);
  return d > 0 ? `in ${text}` : `${text} ago`;
}

// inDays writes a duration of the API in days if it is whole ones.
export const inDays = (text: string) => (/^\d+h$/.test(text) && parseInt(text) > 0 && parseInt(text) % 24 === 0 ? `${parseInt(text) / 24}d` : text);

// parseDuration returns a duration of the API in milliseconds.
export function parseDuration(text: string): number {
  let ms = 0;
  for (const [, n, unit] of text.matchAll(/([0-9.]+)(d|h|ms|m|s|us|µs|ns)/g)) {
    const size = { d: 86400e3, h: 3600e3, m: 60e3, s: 1e3, ms: 1, us: 1e-3, µs: 1e-3, ns: 1e-6 }[unit!] ?? 0;
    ms += Number(n) * size;
  }
  return ms;
}

// toInput and fromInput convert times for date fields, in the viewer's zone or in UTC.
export function toInput(t: number): string {
  const d = new Date(zone.value === "utc" ? t : t - new Date(t).getTimezoneOffset() * 60e3);
  return d.toISOString().slice(0, 19);
}

export function fromInput(text: string): number {
  return text === "" ? NaN : Date.parse(zone.value === "utc" ? text + "Z" : text);
}
