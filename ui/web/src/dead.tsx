// Dead letters of all queues, by what killed them.
import { useEffect, useMemo, useState } from "preact/hooks";
import { at, get, post } from "./api";
import { ask, tell } from "./dialog";
import { Empty, Foreign, Trouble, When } from "./parts";
import { amend, route, toQueue } from "./route";
import { can, may } from "./session";
import { changes, loaded, queues, touch, trouble, version } from "./store";
import { count, many, visible } from "./text";

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
        <Empty title="No dead letters.">What has used up its attempts, or was buried, comes to lie here.</Empty>
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
  error: string; // without what differs from one message to the next
  example: string; // as it is
  first_died: string;
  last_died: string;
  ids: string[];
}

interface Grouped {
  groups: Group[];
  others: number;
  seen: number;
  more: boolean;
}

function Groups({ queue }: { queue: string }) {
  const [grouped, setGrouped] = useState<Grouped | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [work, setWork] = useState<Work | null>(null);
  const [find, setFind] = useState("");
  const change = changes(queue).value;
  useEffect(() => {
    if (work) return undefined;
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
  }, [queue, change, work === null]);
  const want = find.trim().toLowerCase();
  const shown = (grouped?.groups ?? []).filter((g) => want === "" || g.example.toLowerCase().includes(want) || g.error.toLowerCase().includes(want));
  const ids = shown.flatMap((g) => g.ids);
  const redrives = may(queue, "operate") && can("redrive");
  const drops = may(queue, "push", "operate") && can("cancel");
  const begin = (what: "redrive" | "drop", some: string[], of: string) =>
    ask({
      title: what === "redrive" ? "Redrive dead letters?" : "Drop dead letters?",
      text: (
        <p>
          <strong>{many(some.length, "dead letter")}</strong> of <Foreign text={queue} />
          {of && <>, {of}</>}, {what === "redrive" ? "become ready again, with all their attempts." : "will be gone for good, a few seconds from now."}
        </p>
      ),
      yes: what === "redrive" ? `Redrive ${count(some.length)}` : `Drop ${count(some.length)}`,
      danger: what === "drop",
      act: async () => setWork({ what, ids: some, done: 0 }),
    });
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
          {redrives && ids.length > 0 && !work && <button onClick={() => begin("redrive", ids, want && `those whose error has “${visible(find)}”`)}>Redrive {want ? "these" : "all"}…</button>}
          {drops && ids.length > 0 && !work && (
            <button class="quiet-danger" onClick={() => begin("drop", ids, want && `those whose error has “${visible(find)}”`)}>
              Drop {want ? "these" : "all"}…
            </button>
          )}
        </div>
      </div>
      <Trouble error={error} />
      {work && <Progress queue={queue} work={work} end={() => (setWork(null), touch(queue))} />}
      {grouped && (
        <div class="bar">
          <label class="find">
            <span class="offscreen">Filter by error</span>
            <input type="search" placeholder="Filter by error" value={find} onInput={(e) => setFind(e.currentTarget.value)} spellcheck={false} />
            <kbd aria-hidden="true">/</kbd>
          </label>
          {(grouped.more || grouped.others > 0) && <span class="muted">Of the {count(grouped.seen)} that died last{grouped.others > 0 && <>; {count(grouped.others)} with further errors are left out</>}.</span>}
        </div>
      )}
      {grouped === null ? (
        !error && <p class="muted pad">Loading…</p>
      ) : shown.length === 0 ? (
        <Empty title={want ? "No error has this." : "No dead letters in this queue."} />
      ) : (
        <ul class="groups">
          {shown.map((g) => (
            <li key={g.error}>
              <div class="what">
                <strong class="num">{count(g.ids.length)}</strong>
                <a data-row href={toQueue(queue, `state=dead&order=desc`)}>
                  <bdi class="mono">{visible(g.example.slice(0, 400)) || "no error was given"}</bdi>
                </a>
              </div>
              <div class="muted">
                {g.ids.length > 1 ? (
                  <>
                    first <When t={g.first_died} />, last <When t={g.last_died} />
                  </>
                ) : (
                  <>
                    died <When t={g.last_died} />
                  </>
                )}
              </div>
              {!work && (
                <div class="actions">
                  {redrives && <button onClick={() => begin("redrive", g.ids, "those of this error")}>Redrive…</button>}
                  {drops && (
                    <button class="quiet-danger" onClick={() => begin("drop", g.ids, "those of this error")}>
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

interface Work {
  what: "redrive" | "drop";
  ids: string[];
  done: number;
}

const chunk = 200;
const grace = 5;

// Progress does what was asked for, some at a time, and can be stopped. What would be
// gone for good begins after a few seconds in which it can be taken back.
function Progress({ queue, work, end }: { queue: string; work: Work; end: () => void }) {
  const [done, setDone] = useState(0);
  const [left, setLeft] = useState(work.what === "drop" ? grace : 0);
  const [stop] = useState(() => new AbortController());
  useEffect(() => {
    let hit = 0;
    let tried = 0;
    const run = async () => {
      for (let s = left; s > 0; s--) {
        setLeft(s);
        await new Promise((r) => setTimeout(r, 1000));
        if (stop.signal.aborted) return;
      }
      setLeft(0);
      for (let i = 0; i < work.ids.length && !stop.signal.aborted; i += chunk) {
        const ids = work.ids.slice(i, i + chunk);
        if (work.what === "redrive") {
          hit += (await post<{ count: number }>(at(queue, "redrive"), { ids })).count;
        } else {
          const r = await post<{ failed: number }>("v1/cancel", { refs: ids.map((id) => ({ queue, id, if_state: "dead" })) });
          hit += ids.length - r.failed;
        }
        tried = i + ids.length;
        setDone(tried);
      }
    };
    run()
      .then(
        () => {
          const rest = work.ids.length - tried;
          if (tried === 0) return tell({ text: `Nothing was ${work.what === "redrive" ? "redriven" : "dropped"}.` });
          const words = work.what === "redrive" ? `${many(hit, "dead letter is", "dead letters are")} ready again.` : `${many(hit, "dead letter is", "dead letters are")} gone.`;
          tell({ text: words + (tried - hit > 0 ? ` ${count(tried - hit)} had changed meanwhile.` : "") + (rest > 0 ? ` ${count(rest)} were left.` : "") });
        },
        (err) => tell({ text: `${(err as Error).message}; ${count(hit)} were done` }, true),
      )
      .finally(end);
    return () => stop.abort();
  }, []);
  return (
    <div class="progress" role="group" aria-label={work.what === "redrive" ? "Redriving" : "Dropping"}>
      <progress max={work.ids.length} value={done} aria-label="Progress" />
      <span>{left > 0 ? `Dropping ${count(work.ids.length)} in ${left} s` : `${work.what === "redrive" ? "Redriving" : "Dropping"}: ${count(done)} of ${count(work.ids.length)}`}</span>
      <button onClick={() => stop.abort()}>{left > 0 ? "Undo" : "Stop"}</button>
    </div>
  );
}
