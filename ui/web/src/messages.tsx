// The messages of a queue in one state.
import { useEffect, useState } from "preact/hooks";
import { at, Failure, get, list, type ListQuery, type Message, type State } from "./api";
import { preview } from "./body";
import { choices } from "./bulk";
import type { Grouped } from "./dead";
import { Empty, Foreign, Segments, Trouble } from "./parts";
import { useReading } from "./reading";
import { amend, go, route, toFind } from "./route";
import { can } from "./session";
import { Rows, pageOf, type Row } from "./rows";
import { changes } from "./store";
import { count, many } from "./text";
import { fromInput, toInput } from "./time";
import { busy } from "./work";

const pageSize = 50;
const mostSeen = 20_000; // messages that are looked through for a page of those wanted
const bodiesRoom = 1 << 20; // once a list has read as many bytes of bodies, it reads the rest without
// read reads the first messages of a list, and whether there are more: of a state, or of those the
// messages that died of one error, or that ended in one way.
async function read(queue: string, q: ListQuery, error: string | null, ending: string, wanted: number, stop: AbortSignal): Promise<[Row[], boolean]> {
  const all: Row[] = [];
  let among: Set<string> | null = null;
  if (error !== null) {
    const g = (await get<Grouped>(at(queue, "dead", "groups"), stop)).groups.find((g) => g.error === error);
    if (!g) return [all, false];
    among = new Set(g.ids);
    if (can("range")) q = { ...q, from: q.from || g.first_died, to: q.to || new Date(Date.parse(g.last_died) + 1).toISOString() };
  }
  let after = "";
  let room = q.state === "finished" ? 0 : bodiesRoom;
  let seen = 0;
  do {
    const body = room > 0;
    const limit = body ? 100 : 1000;
    const p = await list(queue, { ...q, after, limit: among || ending ? limit : Math.min(limit, wanted - all.length), body }, stop);
    for (const m of p.messages) {
      room -= m.body_base64?.length ?? 0;
      if (among ? among.has(m.id) : !ending || m.ending === ending) all.push({ ...m, body: body ? preview(m) : undefined, body_base64: undefined });
    }
    if (among) room = 0; // the others are in between
    after = p.next;
    seen += p.messages.length;
  } while (after !== "" && all.length < wanted && seen < mostSeen * (wanted / pageSize));
  return [all.slice(0, wanted), after !== "" || all.length > wanted];
}

export function Messages({ queue, state, total }: { queue: string; state: State; total: number }) {
  const query = route.value.query;
  const from = query.get("from") ?? "";
  const to = query.get("to") ?? "";
  const order = (query.get("order") ?? (state === "finished" ? "desc" : "asc")) === "desc" ? "desc" : "asc";
  const ending = query.get("ending") ?? "";
  const died = query.get("error");
  const [rows, setRows] = useState<Row[] | null>(null);
  const [more, setMore] = useState(false);
  const [wanted, setWanted] = useState(pageSize);
  const [error, setError] = useState<unknown>(null);
  const [picked, setPicked] = useState<Set<string>>(new Set());
  const picks = choices(queue, state).length > 0 && !busy(queue);
  const change = changes(queue).value;
  const kind = `${state} ${from} ${to} ${order} ${died} ${ending}`;
  useEffect(() => {
    setRows(null);
    setWanted(pageSize);
    setPicked(new Set());
  }, [kind]);
  useReading(`${queue} ${kind} ${wanted}`, change, 400, async (stop) => {
    try {
      const [all, more] = await read(queue, { state, from, to, order: order === "desc" ? "desc" : undefined }, died, ending, wanted, stop);
      setRows(all);
      setMore(more);
      setError(null);
    } catch (err) {
      if (!stop.aborted) setError(err);
    }
  });
  const chosen = from !== "" || to !== "" || died !== null || ending !== "";
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
      ) : rows.length === 0 && !more ? (
        <Empty title={chosen ? `No ${state} messages ${died !== null ? "of this error" : ending ? "with this outcome" : "in this span"}.` : `No ${state} messages.`}>{!chosen && hints[state]}</Empty>
      ) : (
        <>
          <Rows rows={rows} of={state} ending={ending} picking={picks ? { picked, pick: setPicked } : undefined} />
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
      <button class="quiet" aria-label="Choose none" title="Choose none" onClick={done}>
        ✕
      </button>
    </div>
  );
}

const hints: Record<State, string> = {
  scheduled: "Messages pushed with a delay wait here until they are due.",
  ready: "Due messages wait here until a worker leases them. None waits: all is well.",
  leased: "Messages that workers are handling appear here.",
  dead: "Messages that used up their attempts, or were buried, appear here.",
  finished: "Messages that were handled or cancelled, or expired, appear here for as long as the settings say.",
};

const endings = [
  ["", "All"],
  ["acked", "Handled"],
  ["cancelled", "Cancelled"],
  ["expired", "Expired"],
] as const;
type Ending = (typeof endings)[number][0];

function Filter({ queue, from, to, order, state }: { queue: string; from: string; to: string; order: string; state: State }) {
  const [wrong, setWrong] = useState("");
  const [bounds, setBounds] = useState(innerWidth >= 720);
  const find = async (e: Event) => {
    e.preventDefault();
    const what = String(new FormData(e.currentTarget as HTMLFormElement).get("find") ?? "").trim();
    if (what === "") return;
    if (what.endsWith("*")) return go(toFind(what));
    setWrong("");
    for (const path of [can("keys") && what !== "." && what !== ".." ? at(queue, "keys", what) : "", /^[1-9][0-9]{0,19}$/.test(what) ? at(queue, "messages", what) : ""]) {
      if (path === "") continue;
      try {
        const m = await get<Message>(path);
        return go(pageOf(m));
      } catch (err) {
        if (!(err instanceof Failure && (err.status === 404 || err.status === 400))) return setWrong((err as Error).message);
      }
    }
    setWrong("No message has this key or id.");
  };
  const past = state === "dead" || state === "finished";
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
      {state === "finished" && <Segments label="Outcome" value={(route.value.query.get("ending") ?? "") as Ending} of={endings} onPick={(e) => amend({ ending: e })} />}
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
        <button class="quiet" onClick={() => amend({ order: order === "asc" ? "desc" : "asc" })} title="The other end first">
          {order === "asc" ? (past ? "Oldest first" : "Soonest first") : past ? "Newest first" : "Latest first"}
        </button>
      )}
    </div>
  );
}
