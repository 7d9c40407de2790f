// Dead letters of all queues, grouped by error.
import { useEffect, useMemo, useState } from "preact/hooks";
import { at, get, say, type Failed } from "./api";
import { Failures } from "./attempts";
import { choose, filters, type Deed } from "./bulk";
import { tell } from "./dialog";
import { Empty, Foreign, Trouble, When } from "./parts";
import { amend, route, toMessage, toQueue } from "./route";
import { can, may } from "./session";
import { changes, loaded, queues, trouble, version } from "./store";
import { count, visible } from "./text";
import { busy } from "./work";

export function DeadLetters() {
  const v = version.value;
  const picked = route.value.query.get("queue") ?? "";
  const some = useMemo(() => [...queues.values()].filter((q) => q.dead > 0).sort((a, b) => b.dead - a.dead), [v, loaded.value]);
  const all = some.reduce((n, q) => n + q.dead, 0);
  if (!loaded.value) return trouble.value ? <Trouble error={trouble.value} /> : <p class="muted pad">Loading…</p>;
  const queue = picked || some[0]?.queue || "";
  return (
    <>
      <div class="title">
        <h1>Dead letters</h1>
        <span class="muted">{count(all)}</span>
      </div>
      {some.length === 0 && !picked ? (
        <Empty title="No dead letters.">Messages that used up their attempts, or were buried, appear here.</Empty>
      ) : (
        <div class="sides">
          <nav aria-label="Queues with dead letters" class="side">
            <ul>
              {some.slice(0, 500).map((q) => (
                <li key={q.queue} data-row>
                  <a href={`#/dead?queue=${encodeURIComponent(q.queue)}`} aria-current={q.queue === queue ? "true" : undefined} onClick={(e) => (e.preventDefault(), amend({ queue: q.queue }))}>
                    <Foreign text={q.queue} />
                    <span class="num">{count(q.dead)}</span>
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          {queue && <Groups key={queue} queue={queue} />}
        </div>
      )}
    </>
  );
}

interface Group {
  error: string; // without the parts that differ between messages
  example: string; // one error in full
  count: number;
  first_died: string;
  last_died: string;
  ids: string[];
  failures?: Failed[]; // of the message with that error
}

export interface Grouped {
  groups: Group[];
  others: number;
  seen: number;
  more: boolean;
}

function Groups({ queue }: { queue: string }) {
  const [grouped, setGrouped] = useState<Grouped | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [counting, setCounting] = useState(false);
  const working = busy(queue);
  const [find, setFind] = useState("");
  const change = changes(queue).value;
  useEffect(() => {
    if (working) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(
      () =>
        get<Grouped>(at(queue, "dead", "groups"), stop.signal).then(
          (r) => (setGrouped(r), setError(null)),
          (err) => !stop.signal.aborted && setError(err),
        ),
      grouped ? 400 : 0,
    );
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [queue, change, working]);
  const want = find.trim().toLowerCase();
  const shown = (grouped?.groups ?? []).filter((g) => want === "" || g.example.toLowerCase().includes(want) || g.error.toLowerCase().includes(want));
  const redrives = may(queue, "operate") && can("redrive");
  const drops = may(queue, "operate") && can("cancel") && filters();
  const begin = async (deed: Deed, some: Group[] | null, of: string) => {
    setCounting(true);
    try {
      await choose(queue, deed, some, of);
    } catch (err) {
      tell({ text: say(err) }, true);
    }
    setCounting(false);
  };
  const these = (deed: Deed) => begin(deed, want || !filters() ? shown : null, want && `those whose error has “${visible(find)}”`);
  return (
    <section aria-labelledby="groups-title">
      <div class="title">
        <h2 id="groups-title">
          <Foreign text={queue} />
        </h2>
        <a class="muted" href={toQueue(queue, "state=dead")}>
          as a list
        </a>
        <div class="actions">
          {redrives && shown.length > 0 && !working && (
            <button disabled={counting} onClick={() => these("redrive")}>
              Redrive {want ? "these" : "all"}…
            </button>
          )}
          {drops && shown.length > 0 && !working && (
            <button class="quiet-danger" disabled={counting} onClick={() => these("drop")}>
              Drop {want ? "these" : "all"}…
            </button>
          )}
        </div>
      </div>
      <Trouble error={error} />
      {grouped && (
        <div class="bar">
          <label class="find">
            <span class="offscreen">Filter by error</span>
            <input type="search" placeholder="Filter by error" value={find} onInput={(e) => setFind(e.currentTarget.value)} spellcheck={false} />
            <kbd aria-hidden="true">/</kbd>
          </label>
          {(grouped.more || grouped.others > 0) && <span class="muted">Of the last {count(grouped.seen)} to die{grouped.others > 0 && <>; {count(grouped.others)} with other errors are not shown</>}.</span>}
        </div>
      )}
      {grouped === null ? (
        !error && <p class="muted pad">Loading…</p>
      ) : shown.length === 0 ? (
        <Empty title={want ? "No error matches." : "No dead letters in this queue."} />
      ) : (
        <ul class="groups">
          {shown.map((g) => (
            <li key={g.error}>
              <div class="what">
                <strong class="num">{count(g.count)}</strong>
                <a data-row href={g.count > 1 && can("list") ? toQueue(queue, `state=dead&error=${encodeURIComponent(g.error)}`) : toMessage(queue, g.ids[0]!)} title="The messages that died of it">
                  <bdi class="mono">{visible(g.example.slice(0, 400)) || "no error given"}</bdi>
                </a>
              </div>
              <div class="muted">
                {g.count > 1 && (
                  <>
                    first <When t={g.first_died} />,{" "}
                  </>
                )}
                {g.count > 1 ? "last" : "died"} <When t={g.last_died} />
                {g.failures && g.failures.length > 0 && (
                  <details>
                    <summary>{g.count > 1 ? "how the last one failed" : "how it failed"}</summary>
                    <Failures all={g.failures} />
                  </details>
                )}
              </div>
              {!working && (
                <div class="actions">
                  {redrives && (
                    <button disabled={counting} onClick={() => begin("redrive", [g], "those of this error")}>
                      Redrive…
                    </button>
                  )}
                  {drops && (
                    <button class="quiet-danger" disabled={counting} onClick={() => begin("drop", [g], "those of this error")}>
                      Drop…
                    </button>
                  )}
                </div>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
