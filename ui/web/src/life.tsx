// The life of a message as a line of states with times.
import type { ComponentChildren } from "preact";
import type { Message } from "./api";
import { When } from "./parts";
import { many } from "./text";

// lapsed is the last error of a message whose last lease lapsed: unlike a retry, that moves no due time.
const lapsed = "lease lapsed";

type Step = { name: string; at?: string | null; note?: ComponentChildren; is: "past" | "now" | "next" | "bad" };

// past is the way of a finished message. One that ended early was not due before.
function past(m: Message): Step[] {
  const failed = m.attempt - (m.ending === "acked" ? 1 : 0);
  const early = Date.parse(m.ended!) < Date.parse(m.due);
  const all: (Step | false | undefined | "")[] = [
    m.created && { name: "Pushed", at: m.created, is: "past" },
    failed > 0 && { name: "Failed", is: "bad", note: many(failed, "attempt") },
    !early && { name: "Due", at: m.due, is: "past" },
    m.started && { name: "Leased", at: m.started, is: "past" },
    { name: m.ending === "acked" ? "Handled" : m.ending === "cancelled" ? "Cancelled" : "Expired", at: m.ended, is: "now", note: early && <>it was due <When t={m.due} /></> },
    m.forgotten && { name: "Forgotten", at: m.forgotten, is: "next", note: "then its key is free" },
  ];
  return all.filter((s) => !!s);
}

function steps(m: Message, gone: boolean): Step[] {
  const { state, attempt } = m;
  if (state === "finished") return past(m);
  const all: Step[] = [{ name: "Pushed", at: m.created, is: "past" }];
  const failed = state === "leased" ? attempt - 1 : attempt;
  const failure: Step[] = failed > 0 && state !== "dead" ? [{ name: "Failed", is: "bad", note: many(failed, "attempt") }] : [];
  const after = m.last_error === lapsed && state !== "scheduled";
  if (!after) all.push(...failure);
  if (gone) return [...all, { name: "Due", at: m.due, is: "past" }, ...(after ? failure : []), { name: "Gone", is: "now" }];
  const retry = failed > 0 && state === "scheduled";
  all.push({ name: retry ? "Due again" : "Due", at: m.due, is: state === "scheduled" ? "now" : "past", note: state === "scheduled" ? "waits until it is due" : undefined });
  if (after) all.push(...failure);
  switch (state) {
    case "scheduled":
      all.push({ name: "Ready", is: "next" }, { name: "Leased", is: "next" }, { name: "Handled", is: "next" });
      break;
    case "ready":
      all.push({ name: "Ready", is: "now", note: "waits for a worker" }, { name: "Leased", is: "next" }, { name: "Handled", is: "next" });
      break;
    case "leased":
      all.push({ name: "Leased", at: m.started, is: "now", note: <>attempt {attempt}; the lease ends <When t={m.lease_expires} /></> }, { name: "Handled", is: "next" });
      break;
    case "dead":
      all.push({ name: "Tried", is: "past", note: many(attempt, "attempt") }, { name: "Dead", at: m.died, is: "bad", note: "until it is redriven or dropped" });
      break;
  }
  return all;
}

export function Life({ m, gone }: { m: Message; gone: boolean }) {
  return (
    <ol class="life" aria-label="Its way">
      {steps(m, gone).map((s) => (
        <li key={s.name} class={s.is} aria-current={s.is === "now" ? "step" : undefined}>
          <strong>{s.name}</strong>
          {s.at && <span><When t={s.at} /></span>}
          {s.note && <small>{s.note}</small>}
        </li>
      ))}
    </ol>
  );
}
