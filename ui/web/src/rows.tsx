// A table of messages.
import type { ComponentChildren } from "preact";
import type { Message, State } from "./api";
import { Badge, Foreign, When } from "./parts";
import { go, toMessage, toQueue, toWorkers } from "./route";
import { visible } from "./text";
import { span } from "./time";

// Row is a message of a list, with the beginning of its body in place of the body.
export type Row = Message & { body?: string };

const times: Record<State, string> = { scheduled: "Due", ready: "Due", leased: "Lease ends", dead: "Died", finished: "Ended" };

// timeOf is the time by which the messages of a state are ordered.
const timeOf = (m: Message) => (m.state === "leased" ? m.lease_expires : m.state === "dead" ? m.died : m.state === "finished" ? m.ended : m.due);

// pageOf is the page of a message. One of which only the key is remembered has no other name.
export const pageOf = (m: Message) => toMessage(m.queue, m.state === "finished" && !m.created ? `key:${m.key}` : m.id);

const outcomes: Record<string, string> = { acked: "handled", cancelled: "cancelled", expired: "expired" };

// stateOf is the state of a message, of a finished one its outcome.
export const stateOf = (m: Message): string => (m.state === "finished" ? outcomes[m.ending ?? ""] ?? "finished" : m.state);

const StateBadge = ({ m }: { m: Message }) => <Badge kind={stateOf(m)} />;

type Column = [name: string, kind: string, show: (m: Row) => ComponentChildren];

// finishedColumns say how messages ended. Only of an acked one it is known when its work began.
function finishedColumns(rows: Row[], ending: string): Column[] {
  const between = (from?: string, to?: string) => (from && to ? span(Math.max(0, Date.parse(to) - Date.parse(from))) : <span class="faint">–</span>);
  const all: Column[] = [["Ended", "", (m) => <When t={m.ended} />]];
  if (ending === "") all.unshift(["Outcome", "", (m) => <StateBadge m={m} />]);
  if (rows.some((m) => m.started)) all.push(["Late by", "num wide", (m) => between(m.due, m.started)], ["Ran for", "num wide", (m) => between(m.started, m.ended)]);
  return all;
}

// columnsOf are the columns for messages in a state, or for those that were found in any. One
// that says the same in every row is left out.
function columnsOf(rows: Row[], of: State | "found", ending: string): Column[] {
  const differs = (of: (m: Row) => unknown) => rows.some((m) => of(m) !== of(rows[0]!));
  const worker = (m: Row) => m.worker || (m.state === "dead" && m.failures?.at(-1)?.worker) || "";
  const all: Column[] = [["Key", "key", (m) => <Name m={m} />]];
  if (of === "found") all.push(["Queue", "", (m) => <a href={toQueue(m.queue)}><Foreign text={m.queue} /></a>], ["State", "", (m) => <StateBadge m={m} />]);
  if (rows.some((m) => m.body)) all.push(["Body", "body wide mono", (m) => <Foreign text={m.body ?? ""} />]);
  if (of === "finished") all.push(...finishedColumns(rows, ending));
  else all.push([of === "found" ? "When" : times[of], "", (m) => <>{of === "found" && `${times[m.state]} `}<When t={timeOf(m)} /></>]);
  if (rows.some(worker)) all.push([rows.some((m) => m.ending) ? "By" : "Worker", "worker mono", (m) => <Owner name={worker(m)} live={m.state === "leased"} />]);
  if (of === "found") return all;
  if (differs((m) => `${m.attempt}/${m.max_attempts}`)) all.push(["Attempt", "num wide", (m) => <>{m.attempt}{m.max_attempts > 0 && <span class="faint">/{m.max_attempts}</span>}</>]);
  if (differs((m) => m.priority)) all.push(["Priority", "num wide", (m) => m.priority]);
  all.push(of === "dead" ? ["Last error", "error wide", (m) => <Foreign text={m.last_error || "–"} />] : ["Pushed", "error wide", (m) => <Pushed m={m} />]);
  return all;
}

// Picking is the choice of rows.
interface Picking {
  picked: Set<string>;
  pick: (change: (picked: Set<string>) => Set<string>) => void;
}

interface Listed {
  rows: Row[];
  of: State | "found";
  ending?: string; // all have ended so
  picking?: Picking;
}

export function Rows({ rows, of, ending = "", picking }: Listed) {
  const columns = columnsOf(rows, of, ending);
  const chosen = picking ? rows.filter((m) => picking.picked.has(m.id)).length : 0;
  const all = chosen === rows.length;
  return (
    <div class="scroll">
      <table class="messages">
        <thead>
          <tr>
            {picking && (
              <th class="pick">
                <Pick label="All messages shown" on={all} some={chosen > 0 && !all} flip={() => picking.pick(() => new Set(all ? [] : rows.map((m) => m.id)))} />
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
            <tr key={`${m.queue} ${m.id}`} data-row onClick={(e) => !(e.target as HTMLElement).closest("a, .pick") && getSelection()?.isCollapsed && go(pageOf(m))}>
              {picking && (
                <td class="pick">
                  <Pick label={m.key || m.id} on={picking.picked.has(m.id)} flip={() => picking.pick((was) => flipped(was, m.id))} />
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

// Name is the key of a message, or its id, on narrow pages with the error or body below it.
function Name({ m }: { m: Row }) {
  return (
    <>
      <a href={pageOf(m)}>{m.key ? <Foreign text={m.key} /> : <span class="mono">{m.id}</span>}</a>
      {(m.body || m.state === "dead") && (
        <small class="narrow mono muted">
          <Foreign text={(m.state === "dead" && m.last_error) || m.body || ""} />
        </small>
      )}
    </>
  );
}

// Owner is the worker of a message. That of a leased one is at work.
function Owner({ name, live }: { name: string; live: boolean }) {
  const text = <Foreign text={name || "–"} />;
  return name && live ? <a href={toWorkers(name)}>{text}</a> : text;
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
