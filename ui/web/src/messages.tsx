// The messages of a queue in one state.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { at, Failure, get, list, type ListQuery, type Message, type State } from "./api";
import { preview } from "./body";
import { choices } from "./bulk";
import type { Grouped } from "./dead";
import { Empty, Foreign, Trouble, When } from "./parts";
import { useReading } from "./reading";
import { amend, go, route, toMessage } from "./route";
import { can } from "./session";
import { changes } from "./store";
import { count, many, visible } from "./text";
import { fromInput, toInput } from "./time";
import { busy } from "./work";

const pageSize = 50;
const bodiesRoom = 1 << 20; // once a list has read as many bytes of bodies, it reads the rest without
const times: Record<State, string> = { scheduled: "Due", ready: "Due", leased: "Lease ends", dead: "Died", finished: "Ended" };

// Row is a message of a list, with the beginning of its body in place of the body.
type Row = Message & { body?: string };

// timeOf is the time by which the messages of a state are ordered.
const timeOf = (m: Message) => (m.state === "leased" ? m.lease_expires : m.state === "dead" ? m.died : m.due);

// read reads the first messages of a list, and whether there are more: of a state, or of those the
// messages that died of one error.
async function read(queue: string, q: ListQuery, error: string | null, wanted: number, stop: AbortSignal): Promise<[Row[], boolean]> {
  const all: Row[] = [];
  let among: Set<string> | null = null;
  if (error !== null) {
    const g = (await get<Grouped>(at(queue, "dead", "groups"), stop)).groups.find((g) => g.error === error);
    if (!g) return [all, false];
    among = new Set(g.ids);
    if (can("range")) q = { ...q, from: q.from || g.first_died, to: q.to || new Date(Date.parse(g.last_died) + 1).toISOString() };
  }
  let after = "";
  let room = bodiesRoom;
  do {
    const body = room > 0;
    const limit = body ? 100 : 1000;
    const p = await list(queue, { ...q, after, limit: among ? limit : Math.min(limit, wanted - all.length), body }, stop);
    for (const m of p.messages) {
      room -= m.body_base64?.length ?? 0;
      if (!among || among.has(m.id)) all.push({ ...m, body: body ? preview(m) : undefined, body_base64: undefined });
    }
    if (among) room = 0; // the others are in between
    after = p.next;
  } while (after !== "" && all.length < wanted);
  return [all, after !== ""];
}

export function Messages({ queue, state, total }: { queue: string; state: State; total: number }) {
  const query = route.value.query;
  const from = query.get("from") ?? "";
  const to = query.get("to") ?? "";
  const order = query.get("order") === "desc" ? "desc" : "asc";
  const died = query.get("error");
  const [rows, setRows] = useState<Row[] | null>(null);
  const [more, setMore] = useState(false);
  const [wanted, setWanted] = useState(pageSize);
  const [error, setError] = useState<unknown>(null);
  const [picked, setPicked] = useState<Set<string>>(new Set());
  const picks = choices(queue, state).length > 0 && !busy(queue);
  const change = changes(queue).value;
  const kind = `${state} ${from} ${to} ${order} ${died}`;
  useEffect(() => {
    setRows(null);
    setWanted(pageSize);
    setPicked(new Set());
  }, [kind]);
  useReading(`${queue} ${kind} ${wanted}`, change, 400, async (stop) => {
    try {
      const [all, more] = await read(queue, { state, from, to, order: order === "desc" ? "desc" : undefined }, died, wanted, stop);
      setRows(all);
      setMore(more);
      setError(null);
    } catch (err) {
      if (!stop.aborted) setError(err);
    }
  });
  const chosen = from !== "" || to !== "" || died !== null;
  return (
    <div id="panel" role="tabpanel" aria-labelledby={`tab-${state}`}>
      <Filter queue={queue} from={from} to={to} order={order} state={state} />
      {died !== null && (
        <p class="bar">
          <span>
            Died of <Foreign class="mono" text={died || "no error given"} />
          </span>
          <button class="link" onClick={() => amend({ error: "" })}>
            Any error
          </button>
        </p>
      )}
      <Trouble error={error} />
      {rows === null ? (
        !error && <p class="muted pad">Loading…</p>
      ) : rows.length === 0 ? (
        <Empty title={chosen ? `No ${state} messages ${died !== null ? "of this error" : "in this span"}.` : `No ${state} messages.`}>{!chosen && hints[state]}</Empty>
      ) : (
        <>
          <Rows rows={rows} state={state} picks={picks} picked={picked} pick={setPicked} />
          <p class="after">
            <span class="muted">{more || chosen ? `${many(rows.length, "message")} shown` : many(rows.length, "message")}{more && !chosen && ` of ${count(total)}`}</span>
            {more && <button onClick={() => setWanted(wanted + (wanted < 500 ? 100 : 500))}>Show more</button>}
          </p>
          {picks && <Chosen queue={queue} state={state} chosen={rows.filter((m) => picked.has(m.id))} done={() => setPicked(new Set())} />}
        </>
      )}
    </div>
  );
}

// Chosen offers what can be done with the chosen messages. One that leaves the list is chosen no more.
function Chosen({ queue, state, chosen, done }: { queue: string; state: State; chosen: Row[]; done: () => void }) {
  if (chosen.length === 0) return null;
  return (
    <div class="chosen" role="group" aria-label="Chosen messages">
      <strong aria-live="polite">{count(chosen.length)} chosen</strong>
      {choices(queue, state).map((c) => (
        <button key={c.name} class={c.danger ? "quiet-danger" : ""} onClick={() => c.ask(chosen)}>
          {c.name}
        </button>
      ))}
      <button class="quiet" onClick={done}>
        None
      </button>
    </div>
  );
}

const hints: Record<State, string> = {
  scheduled: "Messages pushed with a delay wait here until they are due.",
  ready: "Due messages wait here until a worker leases them. None waits: all is well.",
  leased: "Messages that workers are handling appear here.",
  dead: "Messages that used up their attempts, or were buried, appear here.",
  finished: "",
};

function Filter({ queue, from, to, order, state }: { queue: string; from: string; to: string; order: string; state: State }) {
  const [wrong, setWrong] = useState("");
  const [bounds, setBounds] = useState(innerWidth >= 720);
  const find = async (e: Event) => {
    e.preventDefault();
    const what = String(new FormData(e.currentTarget as HTMLFormElement).get("find") ?? "").trim();
    if (what === "") return;
    setWrong("");
    for (const path of [can("keys") && what !== "." && what !== ".." ? at(queue, "keys", what) : "", /^[1-9][0-9]{0,19}$/.test(what) ? at(queue, "messages", what) : ""]) {
      if (path === "") continue;
      try {
        const m = await get<Message>(path);
        return go(toMessage(queue, m.state === "finished" ? `key:${m.key}` : m.id));
      } catch (err) {
        if (!(err instanceof Failure && (err.status === 404 || err.status === 400))) return setWrong((err as Error).message);
      }
    }
    setWrong("No message has this key or id.");
  };
  const bound = (name: string, text: string) => {
    const t = fromInput(text);
    amend({ [name]: isNaN(t) ? "" : new Date(t).toISOString() });
  };
  return (
    <div class="bar">
      <form class="find" onSubmit={(e) => void find(e)} role="search">
        <label>
          <span class="offscreen">Find a message by key or id</span>
          <input type="search" name="find" placeholder="Key or id" spellcheck={false} onInput={() => setWrong("")} />
        </label>
        <kbd aria-hidden="true">/</kbd>
      </form>
      {wrong && (
        <span class="trouble" role="alert">
          {wrong}
        </span>
      )}
      {can("range") && !bounds && !from && !to && (
        <button class="quiet" onClick={() => setBounds(true)}>
          Times…
        </button>
      )}
      {can("range") && (bounds || from || to) && (
        <>
          <label class="inline">
            From <input type="datetime-local" step="1" value={from && toInput(Date.parse(from))} onChange={(e) => bound("from", e.currentTarget.value)} />
          </label>
          <label class="inline">
            to <input type="datetime-local" step="1" value={to && toInput(Date.parse(to))} onChange={(e) => bound("to", e.currentTarget.value)} />
          </label>
          {(from || to) && (
            <button class="link" onClick={() => amend({ from: "", to: "" })}>
              Any time
            </button>
          )}
        </>
      )}
      {can("range") && (
        <button class="quiet" onClick={() => amend({ order: order === "asc" ? "desc" : "" })} title="The other end first">
          {order === "asc" ? (state === "dead" ? "Oldest first" : "Soonest first") : state === "dead" ? "Newest first" : "Latest first"}
        </button>
      )}
    </div>
  );
}

interface Listed {
  rows: Row[];
  state: State;
  picks: boolean; // rows can be chosen
  picked: Set<string>;
  pick: (change: (picked: Set<string>) => Set<string>) => void;
}

function Rows({ rows, state, picks, picked, pick }: Listed) {
  // A column that says the same in every row is left out.
  const differs = (of: (m: Row) => unknown) => rows.some((m) => of(m) !== of(rows[0]!));
  const dead = state === "dead";
  const worker = (m: Row) => m.worker || (dead && m.failures?.at(-1)?.worker) || "";
  const columns: [string, string, (m: Row) => ComponentChildren][] = [["Key", "key", (m) => <Name m={m} />]];
  if (rows.some((m) => m.body)) columns.push(["Body", "body wide mono", (m) => <Foreign text={m.body ?? ""} />]);
  columns.push([times[state], "", (m) => <When t={timeOf(m)} />]);
  if (rows.some(worker)) columns.push(["Worker", "worker mono", (m) => <Foreign text={worker(m) || "–"} />]);
  if (differs((m) => `${m.attempt}/${m.max_attempts}`)) columns.push(["Attempt", "num wide", (m) => <>{m.attempt}<span class="faint">/{m.max_attempts}</span></>]);
  if (differs((m) => m.priority)) columns.push(["Priority", "num wide", (m) => m.priority]);
  columns.push(dead ? ["Last error", "error", (m) => <Foreign text={m.last_error || "–"} />] : ["Pushed", "error wide", (m) => <Pushed m={m} />]);
  const chosen = rows.filter((m) => picked.has(m.id)).length;
  const all = chosen === rows.length;
  return (
    <div class="scroll">
      <table class="messages">
        <thead>
          <tr>
            {picks && (
              <th class="pick">
                <Pick label="All messages shown" on={all} some={chosen > 0 && !all} flip={() => pick(() => new Set(all ? [] : rows.map((m) => m.id)))} />
              </th>
            )}
            {columns.map(([name, kind]) => (
              <th key={name} class={kind}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((m) => (
            <tr key={m.id} data-row onClick={(e) => !(e.target as HTMLElement).closest("a, .pick") && getSelection()?.isCollapsed && go(toMessage(m.queue, m.id))}>
              {picks && (
                <td class="pick">
                  <Pick label={m.key || m.id} on={picked.has(m.id)} flip={() => pick((was) => flipped(was, m.id))} />
                </td>
              )}
              {columns.map(([name, kind, show]) => (
                <td key={name} class={kind}>
                  {show(m)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function flipped(all: Set<string>, id: string): Set<string> {
  const next = new Set(all);
  if (!next.delete(id)) next.add(id);
  return next;
}

function Pick({ label, on, some = false, flip }: { label: string; on: boolean; some?: boolean; flip: () => void }) {
  return (
    <label>
      <span class="offscreen">Choose {visible(label)}</span>
      <input type="checkbox" checked={on} indeterminate={some} onChange={flip} />
    </label>
  );
}

// Name is the key of a message, or its id, on narrow pages with the body below it.
function Name({ m }: { m: Row }) {
  return (
    <>
      <a href={toMessage(m.queue, m.id)}>{m.key ? <Foreign text={m.key} /> : <span class="mono">{m.id}</span>}</a>
      {m.body && (
        <small class="narrow mono muted">
          <Foreign text={m.body} />
        </small>
      )}
    </>
  );
}

function Pushed({ m }: { m: Row }) {
  return (
    <>
      <When t={m.created} />
      {m.last_error && (
        <span class="bad" title={m.last_error.slice(0, 600)}>
          {" "}
          failed before
        </span>
      )}
    </>
  );
}
