// The messages of a queue in one state.
import { useEffect, useState } from "preact/hooks";
import { at, Failure, get, list, type Message, type State } from "./api";
import { Empty, Foreign, Trouble, When } from "./parts";
import { useReading } from "./reading";
import { amend, go, route, toMessage } from "./route";
import { can } from "./session";
import { changes } from "./store";
import { count, many } from "./text";
import { fromInput, toInput } from "./time";

const pageSize = 50;
const times: Record<State, string> = { scheduled: "Due", ready: "Due", leased: "Lease ends", dead: "Died", finished: "Ended" };

// timeOf is the time by which the messages of a state are ordered.
const timeOf = (m: Message) => (m.state === "leased" ? m.lease_expires : m.state === "dead" ? m.died : m.due);

export function Messages({ queue, state, total }: { queue: string; state: State; total: number }) {
  const query = route.value.query;
  const from = query.get("from") ?? "";
  const to = query.get("to") ?? "";
  const order = query.get("order") === "desc" ? "desc" : "asc";
  const [rows, setRows] = useState<Message[] | null>(null);
  const [more, setMore] = useState(false);
  const [wanted, setWanted] = useState(pageSize);
  const [error, setError] = useState<unknown>(null);
  const change = changes(queue).value;
  const kind = `${state} ${from} ${to} ${order}`;
  useEffect(() => {
    setRows(null);
    setWanted(pageSize);
  }, [kind]);
  useReading(`${queue} ${kind} ${wanted}`, change, 400, async (stop) => {
    try {
      const all: Message[] = [];
      let after = "";
      do {
        const p = await list(queue, { state, from, to, order: order === "desc" ? "desc" : undefined, after, limit: Math.min(1000, wanted - all.length) }, stop);
        all.push(...p.messages);
        after = p.next;
      } while (after !== "" && all.length < wanted);
      setRows(all);
      setMore(after !== "");
      setError(null);
    } catch (err) {
      if (!stop.aborted) setError(err);
    }
  });
  const chosen = from !== "" || to !== "";
  return (
    <div id="panel" role="tabpanel" aria-labelledby={`tab-${state}`}>
      <Filter queue={queue} from={from} to={to} order={order} state={state} />
      <Trouble error={error} />
      {rows === null ? (
        !error && <p class="muted pad">Loading…</p>
      ) : rows.length === 0 ? (
        <Empty title={chosen ? `No ${state} messages in this span.` : `No ${state} messages.`}>{!chosen && hints[state]}</Empty>
      ) : (
        <>
          <Rows rows={rows} state={state} />
          <p class="after">
            <span class="muted">{more || chosen ? `${many(rows.length, "message")} shown` : many(rows.length, "message")}{more && !chosen && ` of ${count(total)}`}</span>
            {more && <button onClick={() => setWanted(wanted + (wanted < 500 ? 100 : 500))}>Show more</button>}
          </p>
        </>
      )}
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
      {can("range") && (
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
          <button class="quiet" onClick={() => amend({ order: order === "asc" ? "desc" : "" })} title="The other end first">
            {order === "asc" ? (state === "dead" ? "Oldest first" : "Soonest first") : state === "dead" ? "Newest first" : "Latest first"}
          </button>
        </>
      )}
    </div>
  );
}

export function Rows({ rows, state }: { rows: Message[]; state: State }) {
  return (
    <div class="scroll">
      <table class="messages">
        <thead>
          <tr>
            <th>Key</th>
            <th>Id</th>
            <th>{times[state]}</th>
            <th class="num">Attempt</th>
            <th class="num">Priority</th>
            <th>{state === "dead" ? "Last error" : "Pushed"}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((m) => (
            <tr key={m.id} data-row onClick={(e) => !(e.target as HTMLElement).closest("a") && getSelection()?.isCollapsed && go(toMessage(m.queue, m.id))}>
              <td class="key">
                <a href={toMessage(m.queue, m.id)}>{m.key ? <Foreign text={m.key} /> : <span class="faint">no key</span>}</a>
              </td>
              <td class="mono">{m.id}</td>
              <td>
                <When t={timeOf(m)} />
              </td>
              <td class="num">
                {m.attempt}
                <span class="faint">/{m.max_attempts}</span>
              </td>
              <td class="num">{m.priority}</td>
              <td class="error">
                {state === "dead" ? (
                  <Foreign text={m.last_error || "–"} />
                ) : (
                  <>
                    <When t={m.created} />
                    {m.last_error && (
                      <span class="bad" title={m.last_error.slice(0, 600)}>
                        {" "}
                        failed before
                      </span>
                    )}
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
