// The actions. Each asks first and says what it will hit.
import { at, call, get, now, post, type Message, type Queue, type Settings } from "./api";
import { ask, type Done } from "./dialog";
import { Foreign, When } from "./parts";
import { queues, refresh, touch } from "./store";
import { count, many, visible } from "./text";
import { exact, fromInput, inDays, toInput } from "./time";
import { go, toMessage, toQueue } from "./route";
import { can } from "./session";
import { grace, later } from "./work";

const text = (v: FormData, name: string) => String(v.get(name) ?? "").trim();

export function pause(queue: string): void {
  ask({
    title: "Pause the queue?",
    text: (
      <p>
        Workers get no messages of <Foreign text={queue} />; pushes and settlements still work. {waiting(queue)}
      </p>
    ),
    fields: (
      <label>
        For how long
        <input name="for" placeholder="until resumed; or 10m, 2h" pattern="[0-9.]+(ms|s|m|h|d)([0-9.]+(ms|s|m|h|d))*" />
      </label>
    ),
    yes: "Pause",
    act: async (v) => {
      const d = text(v, "for");
      await post(at(queue, "pause"), d ? { for: d } : {});
      touch(queue);
      return { text: `${queue} is paused.`, undo: () => resumeNow(queue) };
    },
  });
}

function waiting(queue: string): string {
  const n = queues.get(queue)?.ready ?? 0;
  return n ? `${many(n, "message that is", "messages that are")} ready will wait.` : "";
}

async function resumeNow(queue: string): Promise<Done> {
  await post(at(queue, "resume"));
  touch(queue);
  return { text: `${queue} is resumed.` };
}

export function resume(queue: string): void {
  ask({
    title: "Resume the queue?",
    text: (
      <p>
        Workers get messages of <Foreign text={queue} /> again. {queues.get(queue)?.ready ? `${many(queues.get(queue)!.ready, "message is", "messages are")} ready and can be leased at once.` : ""}
      </p>
    ),
    yes: "Resume",
    act: () => resumeNow(queue),
  });
}

export async function purge(queue: string): Promise<void> {
  const q = await get<Queue>(at(queue));
  ask({
    title: "Purge the queue?",
    text: (
      <p>
        <strong>{many(q.scheduled + q.ready, "message")}</strong> of <Foreign text={queue} /> are deleted for good: {count(q.scheduled)} scheduled and {count(q.ready)} ready.
        {q.leased > 0 && ` ${count(q.leased)} leased ones stay.`} It begins in {grace} seconds; until then you can undo it.
      </p>
    ),
    fields: (
      <>
        {q.dead > 0 && (
          <label class="check">
            <input type="checkbox" name="dead" /> and the {many(q.dead, "dead letter")}
          </label>
        )}
        {q.finished > 0 && (
          <label class="check">
            <input type="checkbox" name="finished" /> and forget {many(q.finished, "finished key")}
          </label>
        )}
      </>
    ),
    yes: "Purge",
    danger: true,
    act: async (v) => {
      const also = { dead: v.has("dead"), finished: v.has("finished") };
      void later({
        queue,
        does: `Purging ${visible(queue)}`,
        nothing: "Nothing was purged.",
        total: 0,
        run: async () => {
          const done = await post<{ count: number }>(at(queue, "purge"), also);
          return { text: `${many(done.count, "message is", "messages are")} gone.` };
        },
      });
    },
  });
}

export function pushTo(queue: string): void {
  ask({
    title: queue ? "Push a message" : "Push a message to a queue",
    wide: true,
    fields: (
      <>
        <div class="pair">
          <label>
            Queue
            <input name="queue" value={queue} readOnly={queue !== ""} required pattern="[A-Za-z0-9+\/;.$_()][A-Za-z0-9+\/;.$_()\-]*" maxLength={200} spellcheck={false} />
          </label>
          <label>
            Key <span class="faint">may be empty</span>
            <input name="key" spellcheck={false} />
          </label>
        </div>
        <label>
          Body
          <textarea name="body" rows={6} spellcheck={false} placeholder={'{"order": 42}'} />
        </label>
        <div class="pair">
          <label>
            Content type
            <select name="type">
              <option value="application/json">application/json</option>
              <option value="text/plain; charset=utf-8">text/plain</option>
            </select>
          </label>
          <label>
            Delay
            <input name="delay" placeholder="none; or 30m, 48h, 7d" />
          </label>
        </div>
        <div class="pair">
          <label>
            When the key is taken
            <select name="conflict">
              <option value="reject">refuse</option>
              <option value="keep">keep what is there</option>
              <option value="replace">replace it</option>
              <option value="keep_due">replace its body</option>
              <option value="rearm">move it to the new time</option>
            </select>
          </label>
          <label>
            Priority
            <input name="priority" inputMode="numeric" pattern="[0-9]*" placeholder="1024; lower first" />
          </label>
        </div>
      </>
    ),
    yes: "Push",
    act: async (v) => {
      const m: Record<string, unknown> = {};
      const body = String(v.get("body") ?? "");
      const type = text(v, "type");
      if (body !== "" && type === "application/json") {
        try {
          JSON.parse(body);
        } catch (err) {
          throw new Error(`the body is not valid JSON: ${(err as Error).message}`);
        }
      }
      if (body !== "") {
        m.body_base64 = base64(new TextEncoder().encode(body));
        m.content_type = type;
      }
      if (text(v, "key")) {
        m.key = text(v, "key");
        m.on_conflict = text(v, "conflict");
      }
      if (text(v, "delay")) m.delay = text(v, "delay");
      if (text(v, "priority")) m.priority = Number(text(v, "priority"));
      const to = text(v, "queue");
      const done = await post<{ outcome: string; id: string; due: string }>(at(to, "messages"), m);
      touch(to);
      if (queue === "") go(toQueue(to));
      return { text: `The message ${done.id} was ${done.outcome}, due ${exact(done.due)}.` };
    },
  });
}

export function base64(b: Uint8Array): string {
  let s = "";
  for (let i = 0; i < b.length; i += 0x8000) s += String.fromCharCode(...b.subarray(i, i + 0x8000));
  return btoa(s);
}

const fields: [string, string, string][] = [
  ["max_attempts", "Attempts", "20"],
  ["backoff", "Backoff", "15s 30s 3m"],
  ["ttr", "Time to run", "60s"],
  ["priority", "Priority", "1024"],
  ["expire_after", "Expire after", "never"],
  ["remember", "Remember keys for", "not at all"],
  ["dead_keep", "Keep dead for", "forever"],
  ["dead_max", "Max. dead letters", "no limit"],
  ["history", "Keep finished for", "as the store says"],
  ["history_max", "Max. finished", "as the store says"],
  ["max_pending", "Max. live messages", "no limit"],
  ["in_flight", "Max. leased at once", "no limit"],
  ["rate", "Leases per second", "no limit"],
  ["burst", "Burst", "rate in 100ms"],
];
const numbers = new Set(["max_attempts", "priority", "dead_max", "history_max", "max_pending", "in_flight", "rate", "burst"]);

const known = ([name]: [string, string, string]) => can("history") || !name.startsWith("history");

export async function settings(queue: string, mayWrite: boolean): Promise<void> {
  const now = await get<Settings>(at(queue, "settings"));
  const put = async (s: Record<string, unknown>, revision: string) => call<Settings>("PUT", at(queue, "settings"), { settings: s, revision });
  ask({
    title: "Settings",
    wide: true,
    text: (
      <p>
        Of <Foreign text={queue} />. Empty fields are unset. Limits apply at once; defaults apply to new pushes.
      </p>
    ),
    fields: (
      <div class="settings">
        {fields.filter(known).map(([name, label, unset]) => {
          const v = now.settings[name];
          return (
            <label key={name}>
              {label}
              <input name={name} value={v === undefined ? "" : Array.isArray(v) ? v.map(inDays).join(" ") : inDays(String(v))} placeholder={unset} spellcheck={false} readOnly={!mayWrite} />
            </label>
          );
        })}
      </div>
    ),
    yes: mayWrite ? "Save" : "Close",
    act: async (v) => {
      if (!mayWrite) return;
      const next: Record<string, unknown> = {};
      for (const [name] of fields.filter(known)) {
        const value = text(v, name);
        if (value === "") continue;
        next[name] = name === "backoff" ? value.split(/[\s,]+/) : numbers.has(name) ? Number(value) : value;
      }
      const saved = await put(next, now.revision);
      touch(queue);
      return {
        text: `The settings of ${queue} are saved.`,
        undo: async () => {
          await put(now.settings, saved.revision);
          return { text: "The old settings are back." };
        },
      };
    },
  });
}

// Named is how a question names a message.
export function Named({ m }: { m: Message }) {
  return (
    <>
      {m.key ? <Foreign class="mono" text={m.key} /> : <span class="mono">{m.id}</span>} of <Foreign text={m.queue} />
    </>
  );
}

// again is a push that creates a copy of a message.
export function again(m: Message): Record<string, unknown> {
  const push: Record<string, unknown> = { body_base64: m.body_base64 ?? "", content_type: m.content_type, headers: m.headers, priority: m.priority, max_attempts: m.max_attempts, ttr: m.ttr };
  if (m.key) push.key = m.key;
  for (const name of ["backoff", "expire_after", "remember"] as const) if (m[name] !== undefined) push[name] = m[name];
  return push;
}

export function cancel(m: Message): void {
  const dead = m.state === "dead";
  ask({
    title: dead ? "Drop the dead letter?" : "Cancel the message?",
    text: (
      <p>
        One message is deleted: <Named m={m} />
        {!dead && (
          <>
            , due <When t={m.due} />
          </>
        )}
        . No worker will get it.
      </p>
    ),
    yes: dead ? "Drop" : "Cancel it",
    danger: true,
    act: async () => {
      const whole = await get<Message>(at(m.queue, "messages", m.id));
      await call("DELETE", `${at(m.queue, "messages", m.id)}?if_state=${m.state}`);
      touch(m.queue);
      go(toQueue(m.queue, `state=${m.state}`));
      const done: Done = { text: `The message ${m.id} is gone.` };
      if (!dead)
        done.undo = async () => {
          const made = await post<{ id: string }>(at(m.queue, "messages"), { ...again(whole), due: m.due });
          touch(m.queue);
          go(toMessage(m.queue, made.id));
          return { text: `It is back, with the id ${made.id}.` };
        };
      return done;
    },
  });
}

async function move(m: Message, to: { delay: string } | { due: string }): Promise<Done> {
  const moved = await call<Message>("PATCH", `${at(m.queue, "messages", m.id)}?if_state=${m.state}`, to);
  touch(m.queue);
  return {
    text: moved.state === "ready" ? "It is ready." : `It is due ${exact(moved.due)}.`,
    undo: async () => {
      await call("PATCH", at(m.queue, "messages", m.id), { due: m.due });
      touch(m.queue);
      return { text: `It is due ${exact(m.due)} again.` };
    },
  };
}

export function runNow(m: Message): void {
  ask({
    title: "Make it ready now?",
    text: (
      <p>
        <Named m={m} /> is due <When t={m.due} />. The next free worker gets it.
      </p>
    ),
    yes: "Run now",
    act: () => move(m, { delay: "0s" }),
  });
}

export function moveBy(m: Message, delay: string): void {
  ask({
    title: `Make it due in ${delay}?`,
    text: (
      <p>
        <Named m={m} /> is due <When t={m.due} /> now.
      </p>
    ),
    yes: "Reschedule",
    act: () => move(m, { delay }),
  });
}

export function reschedule(m: Message): void {
  ask({
    title: "Reschedule the message",
    text: (
      <p>
        <Named m={m} /> is due <When t={m.due} />.
      </p>
    ),
    fields: (
      <label>
        New time
        <input name="due" type="datetime-local" step="1" required value={toInput(Math.max(Date.parse(m.due), now()))} />
      </label>
    ),
    yes: "Reschedule",
    act: (v) => {
      const t = fromInput(String(v.get("due")));
      if (isNaN(t)) throw new Error("enter a valid time");
      return move(m, { due: new Date(t).toISOString() });
    },
  });
}

export function redrive(m: Message): void {
  ask({
    title: "Redrive the dead letter?",
    text: (
      <p>
        <Named m={m} /> becomes ready again, with its attempts reset to 0 of {m.max_attempts}.
      </p>
    ),
    yes: "Redrive",
    act: async () => {
      const done = await post<{ count: number }>(at(m.queue, "redrive"), { ids: [m.id] });
      touch(m.queue);
      return { text: done.count === 1 ? `The message ${m.id} is ready again.` : "It is no longer dead, or a live message has its key." };
    },
  });
}

export function bury(m: Message): void {
  ask({
    title: "Bury the message?",
    text: (
      <p>
        <Named m={m} /> becomes a dead letter without another attempt.
      </p>
    ),
    fields: (
      <label>
        Reason
        <input name="reason" placeholder="buried by hand" maxLength={500} />
      </label>
    ),
    yes: "Bury",
    danger: true,
    act: async (v) => {
      const held = await post<Message & { lease: string }>(at(m.queue, "messages", m.id, "claim"), { ttr: "30s" });
      const r = await post<{ results: { ok: boolean; error?: { message: string } }[] }>("v1/settle", { settlements: [{ lease: held.lease, do: "bury", reason: text(v, "reason") || "buried by hand" }] });
      touch(m.queue);
      if (!r.results[0]?.ok) throw new Error(r.results[0]?.error?.message ?? "it could not be buried");
      return { text: `The message ${m.id} is dead.` };
    },
  });
}

export { refresh };
