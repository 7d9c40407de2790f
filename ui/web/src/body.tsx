// A body: as folding JSON, text or bytes.
import { useMemo, useState } from "preact/hooks";
import type { Message } from "./api";
import { parseJSON, type Node } from "./json";
import { Copy, Segments } from "./parts";
import { bytes, many, visible } from "./text";

type View = "json" | "text" | "hex";

// unpack decodes the body of a message.
export function unpack(m: Message): Uint8Array<ArrayBuffer> {
  const s = atob(m.body_base64 ?? "");
  const b = new Uint8Array(s.length);
  for (let i = 0; i < s.length; i++) b[i] = s.charCodeAt(i);
  return b;
}

const previewed = 80; // characters of a body in a list

// preview is the beginning of a body on one line: of JSON without spaces, of what is no text
// its size.
export function preview(m: Message): string {
  const all = m.body_base64 ?? "";
  const size = (all.length / 4) * 3 - (all.endsWith("==") ? 2 : all.endsWith("=") ? 1 : 0);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(unpack({ ...m, body_base64: all.slice(0, 2048) }), { stream: true });
  } catch {
    return bytes(size);
  }
  const isJSON = m.content_type === "" || /json/i.test(m.content_type);
  text = isJSON ? text.replace(/("(?:[^"\\]|\\.)*"?)|\s+/g, (_, quoted?: string) => quoted ?? "") : text.replace(/\s+/g, " ").trim();
  const some = [...text];
  return some.length > previewed || all.length > 2048 ? some.slice(0, previewed).join("") + "…" : text;
}

function decode(b: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(b);
  } catch {
    return null;
  }
}

export function Body({ m }: { m: Message }) {
  const body = useMemo(() => unpack(m), [m.body_base64]);
  const text = useMemo(() => decode(body), [body]);
  const tree = useMemo(() => (text !== null && text.trim() !== "" && text.length <= 4 << 20 ? parseJSON(text) : null), [text]);
  const views: [View, string][] = [];
  if (tree) views.push(["json", "JSON"]);
  if (text !== null) views.push(["text", "Text"]);
  views.push(["hex", "Hex"]);
  const isJSON = m.content_type === "" || /json/i.test(m.content_type);
  const first: View = tree && isJSON ? "json" : text !== null && !/[\u0000-\u0008\u000e-\u001a]/.test(text.slice(0, 4096)) ? "text" : "hex";
  const [picked, setPicked] = useState<View | null>(null);
  const view = picked && views.some(([v]) => v === picked) ? picked : first;
  const save = () => {
    const url = URL.createObjectURL(new Blob([body], { type: "application/octet-stream" }));
    const a = document.createElement("a");
    a.href = url;
    a.download = `message-${m.id}`;
    a.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return (
    <section class="body" aria-labelledby="body-title">
      <div class="title">
        <h2 id="body-title">Body</h2>
        <span class="muted">
          <bdi>{visible(m.content_type || "no content type")}</bdi>, {bytes(body.length)}
        </span>
        {body.length > 0 && (
          <div class="actions">
            <Segments label="Shown as" value={view} of={views} onPick={setPicked} />
            {text !== null && <Copy text={text}>Copy</Copy>}
            <button onClick={save}>Download</button>
          </div>
        )}
      </div>
      {body.length === 0 ? (
        <p class="muted">It is empty.</p>
      ) : (
        <div class="sheet" tabIndex={0} role="region" aria-label="Body of the message">
          {view === "json" && <Tree node={tree!} />}
          {view === "text" && <Plain text={text!} />}
          {view === "hex" && <Hex body={body} />}
        </div>
      )}
    </section>
  );
}

// Plain shows the beginning of a text, and more on request.
function Plain({ text }: { text: string }) {
  const [most, setMost] = useState(16 << 10);
  return (
    <>
      <pre>
        <bdi>{visible(text.slice(0, most), true)}</bdi>
      </pre>
      {text.length > most && (
        <button class="link" onClick={() => setMost(most * 4)}>
          Show more of the other {bytes(text.length - most)}
        </button>
      )}
    </>
  );
}

function Hex({ body }: { body: Uint8Array }) {
  const [most, setMost] = useState(2 << 10);
  const lines = useMemo(() => {
    const all: string[] = [];
    for (let i = 0; i < Math.min(most, body.length); i += 16) {
      const row = [...body.subarray(i, Math.min(i + 16, body.length))];
      const hex = row.map((b, j) => b.toString(16).padStart(2, "0") + (j === 7 ? " " : "")).join(" ");
      const text = row.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join("");
      all.push(`${i.toString(16).padStart(8, "0")}  ${hex.padEnd(49)}  ${text}`);
    }
    return all.join("\n");
  }, [body, most]);
  return (
    <>
      <pre class="hex">{lines}</pre>
      {body.length > most && (
        <button class="link" onClick={() => setMost(most * 8)}>
          Show more of the other {bytes(body.length - most)}
        </button>
      )}
    </>
  );
}

const kindOf = (raw: string) => (raw[0] === '"' ? "s" : /^[tfn]/.test(raw) ? "w" : "n");

function Scalar({ raw }: { raw: string }) {
  const [whole, setWhole] = useState(false);
  const cut = raw.length > 2000 && !whole;
  return (
    <>
      <bdi class={kindOf(raw)}>{visible(cut ? raw.slice(0, 2000) : raw)}</bdi>
      {cut && (
        <button class="link" onClick={() => setWhole(true)}>
          … {bytes(raw.length - 2000)} more
        </button>
      )}
    </>
  );
}

function Tree({ node }: { node: Node }) {
  return (
    <div class="json">
      <Branch node={node} depth={0} />
    </div>
  );
}

const atOnce = 100;

function Branch({ node, name, depth }: { node: Node; name?: string | undefined; depth: number }) {
  const [most, setMost] = useState(atOnce);
  const [open, setOpen] = useState("items" in node && (depth < 3 || node.items.length < 4) && depth < 12);
  const label = name !== undefined && (
    <>
      <bdi class="k">{visible(name)}</bdi>
      {": "}
    </>
  );
  if (!("items" in node))
    return (
      <div class="leaf">
        {label}
        <Scalar raw={node.raw} />
      </div>
    );
  const end = node.open === "{" ? "}" : "]";
  if (node.items.length === 0)
    return (
      <div class="leaf">
        {label}
        {node.open + end}
      </div>
    );
  return (
    <details open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        {label}
        {node.open}
        {!open && (
          <span class="faint">
            {" "}
            {many(node.items.length, node.open === "{" ? "field" : "item")} {end}
          </span>
        )}
      </summary>
      {open && (
        <div class="inner">
          {node.items.slice(0, most).map((x, i) => (
            <Branch key={i} node={x.value} name={x.name} depth={depth + 1} />
          ))}
          {node.items.length > most && (
            <button class="link" onClick={() => setMost(most * 4)}>
              {many(node.items.length - most, "more", "more")}
            </button>
          )}
        </div>
      )}
      {open && <div class="end">{end}</div>}
    </details>
  );
}
