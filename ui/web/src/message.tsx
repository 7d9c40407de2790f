// One message: its states, body and details.
import { useState } from "preact/hooks";
import { at, Failure, get, type Message } from "./api";
import * as actions from "./actions";
import { Attempts } from "./attempts";
import { Body, unpack } from "./body";
import { Life } from "./life";
import { Badge, Copy, Empty, Foreign, Trouble, When } from "./parts";
import { useReading } from "./reading";
import { toQueue, toQueues } from "./route";
import { stateOf } from "./rows";
import { can, may } from "./session";
import { changes } from "./store";
import { bytes, count } from "./text";
import { parseDuration, span, tick } from "./time";

export function MessagePage({ queue, id }: { queue: string; id: string }) {
  const [m, setM] = useState<Message | null>(null);
  const [gone, setGone] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const change = changes(queue).value;
  // A message that changes state by time alone is read again then.
  const next = m?.state === "scheduled" ? m.due : m?.state === "leased" ? m.lease_expires : undefined;
  const passed = next !== undefined && tick.value >= 0 && Date.parse(next) < Date.now();
  useReading(`${queue} ${id}`, `${change} ${passed && Math.floor(tick.value / 2)}`, 400, (stop) => {
    const path = id.startsWith("key:") ? at(queue, "keys", id.slice(4)) : at(queue, "messages", id);
    return get<Message>(path, stop).then(
      (found) => (setM((old) => (old && same(old, found) ? old : found)), setGone(false), setError(null)),
      (err) => {
        if (stop.aborted) return;
        if (err instanceof Failure && err.status === 404) setGone(true);
        else setError(err);
      },
    );
  });

  const crumbs = (
    <nav class="crumbs" aria-label="Where">
      <a href={toQueues()}>Queues</a>
      <span aria-hidden="true"> / </span>
      <a href={toQueue(queue, m && m.state !== "scheduled" ? `state=${m.state}` : "")}>
        <Foreign text={queue} />
      </a>
    </nav>
  );
  if (!m)
    return (
      <>
        {crumbs}
        {gone ? (
          <Empty title={`There is no message ${id} in this queue.`}>It was handled or cancelled, or it expired.</Empty>
        ) : error ? (
          <Trouble error={error} />
        ) : (
          <p class="muted pad">Loading…</p>
        )}
      </>
    );
  return (
    <>
      {crumbs}
      <div class="title">
        <h1 class="message-name">{m.key ? <Foreign text={m.key} /> : `Message ${m.id}`}</h1>
        <Badge kind={gone ? "gone" : stateOf(m)} />
        {!gone && <Actions m={m} />}
      </div>
      <Trouble error={error} />
      {gone && <p class="notice">It is no longer in the queue: it was handled or cancelled, or it expired. Below is its last known state.</p>}
      <Life m={m} gone={gone} />
      <div class="columns">
        <div>
          {m.state === "finished" ? (
            <Ended m={m} />
          ) : (
            <>
              <Body m={m} />
              <Headers m={m} />
            </>
          )}
        </div>
        <div>
          {m.created && <Attempts m={m} />}
          {m.state !== "finished" && <Details m={m} />}
        </div>
      </div>
    </>
  );
}

function same(a: Message, b: Message): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function Actions({ m }: { m: Message }) {
  const { queue, state } = m;
  const change = may(queue, "push", "operate");
  const waits = state === "scheduled" || state === "ready";
  return (
    <div class="actions">
      {state === "scheduled" && change && can("reschedule") && (
        <>
          <button class="main" onClick={() => actions.runNow(m)}>
            Run now…
          </button>
          <button onClick={() => actions.moveBy(m, "5m")}>In 5m…</button>
        </>
      )}
      {waits && change && can("reschedule") && <button onClick={() => actions.reschedule(m)}>Reschedule…</button>}
      {state === "dead" && may(queue, "operate") && can("redrive") && (
        <button class="main" onClick={() => actions.redrive(m)}>
          Redrive…
        </button>
      )}
      {state === "ready" && may(queue, "work") && can("claim") && <button onClick={() => actions.bury(m)}>Bury…</button>}
      {state !== "finished" && <Copy text={() => curl(m)}>Copy as curl</Copy>}
      {(waits || state === "dead") && change && can("cancel") && (
        <button class="quiet-danger" onClick={() => actions.cancel(m)}>
          {state === "dead" ? "Drop…" : "Cancel…"}
        </button>
      )}
    </div>
  );
}

// quote quotes a word for a shell.
const quote = (s: string) => `'${s.replaceAll("'", `'\\''`)}'`;

// curl is a command that pushes a copy of a message.
function curl(m: Message): string {
  const push = actions.again(m);
  push.due = m.due;
  let text = "";
  if (m.content_type === "application/json") {
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(unpack(m));
      JSON.parse(text);
      delete push.body_base64;
    } catch {
      text = ""; // sent as base64
    }
  }
  const rest = JSON.stringify(push);
  // The body is copied as text, so that numbers keep their digits.
  const data = text === "" ? rest : `{"body":${text},${rest.slice(1)}`;
  const url = new URL(at(m.queue, "messages"), location.href.split("#")[0]);
  return `curl -H 'Content-Type: application/json' -d ${quote(data)} ${quote(url.href)}`;
}

function Headers({ m }: { m: Message }) {
  const pairs: [string, string][] = Array.isArray(m.headers)
    ? m.headers
    : Object.entries(m.headers ?? {}).flatMap(([k, v]) => (Array.isArray(v) ? v : [v]).map((x) => [k, x] as [string, string]));
  if (pairs.length === 0) return null;
  return (
    <section aria-labelledby="headers-title">
      <h2 id="headers-title">Headers</h2>
      <dl class="details">
        {pairs.slice(0, 200).map(([k, v], i) => (
          <div key={i}>
            <dt>
              <Foreign text={k} />
            </dt>
            <dd class="mono">
              <Foreign text={v.length > 2000 ? v.slice(0, 2000) + "…" : v} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

// Ended is what is known of a finished message. Its body is not kept.
function Ended({ m }: { m: Message }) {
  const rows: Rows = [
    ["Id", <span class="mono">{m.id}</span>],
    ["Key", m.key ? <Foreign class="mono" text={m.key} /> : <span class="faint">none</span>],
  ];
  if (m.created) rows.push(["Pushed", <When t={m.created} />]);
  rows.push(["Due", <When t={m.due} />]);
  if (m.started) rows.push(["Leased", <When t={m.started} />], ["Late by", span(Math.max(0, Date.parse(m.started) - Date.parse(m.due)))]);
  rows.push(["Ended", <When t={m.ended} />]);
  if (m.ending === "cancelled" && m.worker) rows.push(["Cancelled by", <Foreign class="mono" text={m.worker} />]);
  if (m.started) rows.push(["Ran for", span(Date.parse(m.ended!) - Date.parse(m.started))]);
  if (m.forgotten) rows.push(["Key remembered until", <When t={m.forgotten} />]);
  return <List rows={rows} />;
}

function Details({ m }: { m: Message }) {
  const rows: Rows = [
    ["Id", <span class="mono">{m.id}</span>],
    ["Key", m.key ? <Foreign class="mono" text={m.key} /> : <span class="faint">none</span>],
    ["Priority", count(m.priority)],
    ["Time to run", span(parseDuration(m.ttr))],
    ["Pushed", <When t={m.created} />],
    ["Due", <When t={m.due} />],
  ];
  if (m.expires) rows.push(["Expires", <When t={m.expires} />]);
  if (m.remember) rows.push(["Key remembered for", span(parseDuration(m.remember))]);
  rows.push(["Body", bytes(unpack(m).length)]);
  return <List rows={rows} />;
}

type Rows = [string, preact.ComponentChildren][];

function List({ rows }: { rows: Rows }) {
  return (
    <section aria-labelledby="details-title">
      <h2 id="details-title">Details</h2>
      <dl class="details">
        {rows.map(([k, v]) => (
          <div key={k}>
            <dt>{k}</dt>
            <dd>{v}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
