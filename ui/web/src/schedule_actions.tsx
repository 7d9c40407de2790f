// What is done to a schedule: its form, and the questions before a change.
import { useEffect, useState } from "preact/hooks";
import { base64 } from "./actions";
import { call, Failure, get, post, say, schedule, type Schedule, type Times } from "./api";
import { act, ask } from "./dialog";
import { Foreign } from "./parts";
import { go, toSchedule, toSchedules } from "./route";
import { catchUps, Instants } from "./schedules";
import { fromInput, toInput, zone } from "./time";

export function trigger(s: Schedule, done: () => void): void {
  ask({
    title: "Trigger the schedule?",
    text: <p>One message is pushed to <Foreign text={s.message.queue} /> now, beside those to come.</p>,
    yes: "Trigger",
    act: async () => {
      await post(schedule(s.name, "trigger"));
      done();
      return { text: `${s.name} was triggered.` };
    },
  });
}

export const pause = (s: Schedule, done: () => void) => act(async () => {
  await post(schedule(s.name, "pause"));
  done();
  return { text: `${s.name} is paused.`, undo: async () => void resume(s, done) };
});

export const resume = (s: Schedule, done: () => void) => act(async () => {
  await post(schedule(s.name, "resume"));
  done();
  return { text: `${s.name} goes on with its next time.` };
});

export function remove(s: Schedule): void {
  ask({
    title: "Remove the schedule?",
    text: <p><Foreign text={s.name} /> fires no more. The messages that it has pushed stay.</p>,
    yes: "Remove",
    danger: true,
    act: async () => {
      await call("DELETE", `${schedule(s.name)}?revision=${encodeURIComponent(s.revision)}`);
      go(toSchedules());
      return { text: `${s.name} is removed.` };
    },
  });
}

const text = (v: FormData, name: string) => String(v.get(name) ?? "").trim();

// definition is what the form says, in the form of the API.
function definition(v: FormData, old: Schedule | null): Record<string, unknown> {
  const d: Record<string, unknown> = { spec: text(v, "spec") };
  for (const name of ["zone", "jitter", "catch_up"]) if (text(v, name)) d[name] = text(v, name);
  for (const name of ["start", "end"]) {
    const at = fromInput(text(v, name));
    if (!isNaN(at)) d[name] = new Date(at).toISOString();
  }
  const m: Record<string, unknown> = { ...old?.message, queue: text(v, "queue") };
  for (const name of ["body", "body_base64", "content_type", "headers", "max_attempts"]) delete m[name];
  const body = String(v.get("body") ?? "");
  if (body !== "") {
    m.body_base64 = base64(new TextEncoder().encode(body));
    m.content_type = isJSON(body) ? "application/json" : "text/plain; charset=utf-8";
  }
  if (old && body === bodyOf(old)) Object.assign(m, { body_base64: old.message.body_base64, content_type: old.message.content_type });
  const headers = text(v, "headers");
  if (headers) m.headers = headers.split("\n").map((line) => [line.split(":")[0]!.trim(), line.split(":").slice(1).join(":").trim()]);
  if (text(v, "max_attempts")) m.max_attempts = Number(text(v, "max_attempts"));
  return { ...d, message: m };
}

function isJSON(body: string): boolean {
  try {
    JSON.parse(body);
    return true;
  } catch {
    return false;
  }
}

function bodyOf(s: Schedule | null): string {
  return new TextDecoder().decode(Uint8Array.from(atob(s?.message.body_base64 ?? ""), (c) => c.charCodeAt(0)));
}

function headersOf(s: Schedule | null): string {
  const all = s?.message.headers ?? [];
  const pairs = Array.isArray(all) ? all : Object.entries(all).flatMap(([name, v]) => (Array.isArray(v) ? v : [v]).map((x) => [name, x] as const));
  return pairs.map(([name, v]) => `${name}: ${v}`).join("\n");
}

// edit shows the form of a schedule, or that of a new one.
export function edit(s: Schedule | null, done = () => {}, title = s ? "Edit the schedule" : "A new schedule"): void {
  ask({
    title,
    wide: true,
    fields: <Fields s={s} />,
    yes: "Save",
    act: async (v) => {
      const name = s?.name ?? text(v, "name");
      try {
        await call("PUT", schedule(name), { ...definition(v, s), revision: s?.revision ?? "0" });
      } catch (err) {
        if (!(err instanceof Failure && err.status === 409 && s)) throw err;
        const theirs = await get<Schedule>(schedule(name));
        edit(theirs, done, "The schedule as someone else has changed it");
        return { text: `${name} has been changed meanwhile. Your change was not saved.`, bad: true };
      }
      if (s) done();
      else go(toSchedule(name));
      return { text: `${name} is saved.` };
    },
  });
}

// Text is a field of the form.
function Text({ name, label, value, ...more }: { name: string; label: string; value: unknown; [more: string]: unknown }) {
  return (
    <label>
      {label}
      <input name={name} defaultValue={value === undefined ? "" : String(value)} maxLength={200} spellcheck={false} {...more} />
    </label>
  );
}

function Fields({ s }: { s: Schedule | null }) {
  const [form, setForm] = useState<HTMLFormElement | null>(null);
  const [typed, setTyped] = useState(0);
  const time = { type: "datetime-local", step: "1" };
  const here = zone.value === "utc" ? "UTC" : "your time";
  return (
    <div ref={(e) => setForm(e?.closest("form") ?? null)} onInput={() => setTyped((n) => n + 1)}>
      <div class="pair">
        <Text name="name" label="Name" value={s?.name} readOnly={s !== null} required placeholder="report.nightly" />
        <Text name="queue" label="Queue" value={s?.message.queue} required placeholder="reports" />
        <Text name="spec" label="When" value={s?.spec} required placeholder="0 2 * * 1-5, @daily or @every 90s" class="mono" />
        <Text name="zone" label="Zone" value={s?.zone} placeholder="UTC; or Europe/Berlin" />
      </div>
      <Preview form={form} typed={typed} old={s} />
      <label>
        Body
        <textarea name="body" rows={3} spellcheck={false} defaultValue={bodyOf(s)} />
      </label>
      <label>
        Headers <span class="faint">one a line, as in name: value</span>
        <textarea name="headers" rows={2} spellcheck={false} defaultValue={headersOf(s)} />
      </label>
      <div class="pair">
        <label>
          Missed by more than a minute
          <select name="catch_up">
            {Object.entries(catchUps).map(([c, does]) => (
              <option key={c} value={c} selected={c === s?.catch_up}>{does}</option>
            ))}
          </select>
        </label>
        <Text name="jitter" label="Jitter" value={s?.jitter} placeholder="none; or 30s, 5m" />
        <Text name="start" label={`Start (${here})`} value={s?.start && toInput(Date.parse(s.start))} {...time} />
        <Text name="end" label={`End (${here})`} value={s?.end && toInput(Date.parse(s.end))} {...time} />
        <Text name="max_attempts" label="Attempts" value={s?.message.max_attempts} pattern="[0-9]*" placeholder="20" />
      </div>
    </div>
  );
}

// Preview shows the next times of what is typed, or what is wrong with it.
function Preview({ form, typed, old }: { form: HTMLFormElement | null; typed: number; old: Schedule | null }) {
  const [times, setTimes] = useState<Times | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    if (!form || !text(new FormData(form), "spec")) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      const v = new FormData(form);
      const { message: _, ...when } = definition(v, old);
      const name = text(v, "name");
      post<Times>("v1/schedules/preview?n=10", name ? { ...when, name } : when, stop.signal).then(
        (t) => (setTimes(t), setWrong("")),
        (err) => {
          if (!stop.signal.aborted) setWrong(say(err));
        },
      );
    }, 250);
    return () => (clearTimeout(timer), stop.abort());
  }, [form, typed]);
  return (
    <div class="preview" aria-live="polite">
      {wrong ? (
        <p class="trouble">{wrong}</p>
      ) : times ? (
        <>
          {times.explain.map((line) => <p key={line}>{line}</p>)}
          <Instants times={times.next} of={(form && text(new FormData(form), "zone")) || "UTC"} />
        </>
      ) : (
        <p class="faint">The next ten times appear here.</p>
      )}
    </div>
  );
}
