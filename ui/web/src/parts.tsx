// Small components that the pages share.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { now, say } from "./api";
import { clock, exact, relative, span, tick, zone } from "./time";
import { visible } from "./text";

// Foreign shows text from outside: it cannot change the direction of the text around it,
// and invisible characters are shown.
export function Foreign({ text, class: name }: { text: string; class?: string }) {
  const shown = visible(text);
  return (
    <bdi class={name} title={shown.length > 40 ? shown.slice(0, 600) : undefined}>
      {shown}
    </bdi>
  );
}

// When shows a time relative or exact, as the viewer chose, and the other as a tooltip.
export function When({ t, none = "–" }: { t: string | null | undefined; none?: string }) {
  if (!t) return <span class="faint">{none}</span>;
  void zone.value;
  const first = clock.value === "relative";
  if (first) void tick.value;
  const both = [relative(t), exact(t)];
  return (
    <time dateTime={t} title={first ? both[1] : both[0]}>
      {first ? both[0] : exact(t, false)}
    </time>
  );
}

// Since shows how long ago a time was.
export function Since({ t }: { t: string }) {
  void tick.value;
  return (
    <time dateTime={t} title={exact(t)}>
      {span(Math.max(0, now() - Date.parse(t)))}
    </time>
  );
}

const badges: Record<string, string> = { schedule: "warn", overdue: "warn", active: "good", ended: "soft", server: "bad", store: "bad", intake: "bad", failing: "bad", connecting: "warn", running: "good", late: "warn", "was late": "soft", dead: "bad", paused: "warn", "no worker": "warn", leased: "busy", ready: "good", scheduled: "soft", finished: "soft", handled: "good", expired: "warn", gone: "soft" };

export function Badge({ kind, children }: { kind: string; children?: ComponentChildren }) {
  return <span class={`badge ${badges[kind] ?? "soft"}`}>{children ?? kind}</span>;
}

export function Trouble({ error, again }: { error: unknown; again?: () => void }) {
  if (!error) return null;
  return (
    <p class="trouble" role="alert">
      {say(error)} {again && <button class="link" onClick={again}>Try again</button>}
    </p>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p>{title}</p>
      {children && <p class="muted">{children}</p>}
    </div>
  );
}

// Segments are buttons of which one is chosen.
export function Segments<T extends string>({ label, value, of, onPick }: { label: string; value: T; of: readonly (readonly [T, string])[]; onPick: (v: T) => void }) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {of.map(([v, text]) => (
        <button key={v} type="button" aria-pressed={v === value} onClick={() => onPick(v)}>
          {text}
        </button>
      ))}
    </div>
  );
}

// Tabs are tabs; the arrow keys move between them.
export function Tabs<T extends string>({ label, value, of, onPick }: { label: string; value: T; of: readonly (readonly [T, ComponentChildren])[]; onPick: (v: T) => void }) {
  const bar = useRef<HTMLDivElement>(null);
  const onKey = (e: KeyboardEvent) => {
    const i = of.findIndex(([v]) => v === value);
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: of.length - 1 }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    const n = (to + of.length) % of.length;
    onPick(of[n]![0]);
    (bar.current?.children[n] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} ref={bar} onKeyDown={onKey}>
      {of.map(([v, text]) => (
        <button key={v} type="button" role="tab" id={`tab-${v}`} aria-selected={v === value} aria-controls="panel" tabIndex={v === value ? 0 : -1} onClick={() => onPick(v)}>
          {text}
        </button>
      ))}
    </div>
  );
}

// Figure is a number with a name.
export function Figure({ name, children, tone, hint }: { name: string; children: ComponentChildren; tone?: string; hint?: string }) {
  return (
    <div class={`figure ${tone ?? ""}`} title={hint}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

// Copy is a button that copies a text.
export function Copy({ text, children }: { text: string | (() => string); children: ComponentChildren }) {
  const [done, setDone] = useState("");
  useEffect(() => {
    const t = done ? setTimeout(() => setDone(""), 2000) : 0;
    return () => clearTimeout(t);
  }, [done]);
  const copy = async () => {
    const value = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(value);
      setDone("Copied");
    } catch {
      setDone(copyBySelection(value) ? "Copied" : "Could not copy");
    }
  };
  return (
    <button type="button" onClick={copy}>
      <span aria-live="polite">{done || children}</span>
    </button>
  );
}

// copyBySelection is for pages without TLS, where the clipboard API is missing.
function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "offscreen";
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
