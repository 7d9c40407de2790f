// Messages of all queues, found by key, by the beginning of a key, or by header.
import { useEffect, useState } from "preact/hooks";
import { get, type Found } from "./api";
import { Empty, Foreign, Trouble } from "./parts";
import { route } from "./route";
import { Rows, pageOf } from "./rows";
import { count, many } from "./text";

// turns is how many answers without a message are read before the viewer is asked to go on.
const turns = 10;

// wanted are the searches that a text may mean; a later one is made if those before find nothing.
function wanted(text: string): [by: string, value: string, name: string][] {
  if (text.endsWith("*")) return [["key_prefix", text.slice(0, -1), "keys that begin with"]];
  const header: [string, string, string] = ["header", text, "the header"];
  return [["key", text, "the key"], ...(/^[^:=\s]+[:=]/.test(text) ? [header] : [])];
}

interface Result extends Found {
  by: number; // of the searches wanted
}

async function search(text: string, before: Result, stop: AbortSignal): Promise<Result> {
  const all = wanted(text);
  let { by, next, read } = before;
  for (let turn = 0; turn < turns && by < all.length; turn++) {
    const p = new URLSearchParams({ [all[by]![0]]: all[by]![1], ...(next && { after: next }) });
    const f = await get<Found>(`v1/messages?${p}`, stop);
    next = f.next;
    read += f.read;
    if (f.messages.length > 0) return { messages: [...before.messages, ...f.messages], next, read, by };
    if (next === "") {
      if (before.messages.length > 0 || by === all.length - 1) break;
      by++;
    }
  }
  return { ...before, next, read, by };
}

const none: Result = { messages: [], next: "", read: 0, by: 0 };

export function Find() {
  const text = (route.value.query.get("q") ?? "").trim();
  return (
    <>
      <div class="title">
        <h1>Search</h1>
        <span class="muted">
          <Foreign text={text} />
        </span>
      </div>
      {text && text !== "*" ? <Search key={text} text={text} /> : <Empty title="Search all queues.">Enter a key, the beginning of one and *, or a header as name:value.</Empty>}
    </>
  );
}

function Search({ text }: { text: string }) {
  const [found, setFound] = useState(none);
  const [busy, setBusy] = useState(true);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    if (!busy) return undefined;
    const stop = new AbortController();
    search(text, found, stop.signal).then(
      (r) => {
        const one = r.messages[0];
        if (one && r.messages.length === 1 && r.next === "" && wanted(text)[r.by]![0] === "key") return location.replace(pageOf(one));
        setFound(r);
        setBusy(false);
      },
      (err) => {
        if (stop.signal.aborted) return;
        setError(err);
        setBusy(false);
      },
    );
    return () => stop.abort();
  }, [busy]);
  const { messages, next, read, by } = found;
  const goOn = next !== "" && !busy && (
    <button onClick={() => (setError(null), setBusy(true))}>
      Go on
    </button>
  );
  return (
    <>
      <Trouble error={error} />
      {messages.length > 0 && <Rows rows={messages} of="found" />}
      {busy ? (
        <p class="muted pad">Searching…</p>
      ) : messages.length === 0 && !error ? (
        <Empty title={next ? "Nothing found so far." : "No message is found."}>
          Looked for {wanted(text).slice(0, by + 1).map((w) => w[2]).join(", then ")} <Foreign text={wanted(text)[by]![1]} />, in {many(read, by === 0 && wanted(text)[0]![0] === "key" ? "queue" : "message")}. {goOn}
        </Empty>
      ) : (
        <p class="after">
          <span class="muted">
            {many(messages.length, "message")} found{next && `, ${count(read)} looked at so far`}
          </span>
          {goOn}
        </p>
      )}
    </>
  );
}
