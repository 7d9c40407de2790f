// Keyboard shortcuts.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { go, route, toDead, toQueue, toQueues, toWorkers } from "./route";

export const helpShown = signal(false);

const known: [string, string][] = [
  ["/", "Find: filter queues, or find a message by key or id"],
  ["s", "Search all queues"],
  ["g then q", "All queues"],
  ["g then d", "Dead letters"],
  ["g then w", "Workers"],
  ["j, k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["x", "Choose the row"],
  ["u", "Up: from a message to its queue, from a queue to all"],
  ["t", "Times relative or exact"],
  ["z", "Times in your zone or UTC"],
  ["Esc", "Close what is open"],
  ["?", "This help"],
];

let last = "";

function up(): void {
  const { page, queue } = route.value;
  go(page === "message" ? toQueue(queue) : toQueues());
}

// step moves the focus between rows that can be opened.
function step(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")].flatMap((row) => (row.matches("a") ? row : (row.querySelector<HTMLElement>("a[href]") ?? [])));
  const i = rows.indexOf(document.activeElement as HTMLElement);
  const to = rows[i < 0 ? (by > 0 ? 0 : rows.length - 1) : i + by];
  to?.focus();
  to?.scrollIntoView({ block: "nearest" });
}

function onKey(e: KeyboardEvent): void {
  const t = e.target as HTMLElement;
  if (e.ctrlKey || e.metaKey || e.altKey || t.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
  const both = last === "g" ? "g" + e.key : e.key;
  last = e.key;
  const press = (name: string) => document.querySelector<HTMLElement>(`.tools button[title*="${name}"]`)?.click();
  switch (both) {
    case "/":
    case "s": {
      const find = document.querySelector<HTMLInputElement>(`${both === "s" ? ".top" : "main"} input[type=search]`);
      if (!find) return;
      find.focus();
      find.select();
      break;
    }
    case "gq":
      go(toQueues());
      break;
    case "gd":
      go(toDead());
      break;
    case "gw":
      go(toWorkers());
      break;
    case "j":
      step(1);
      break;
    case "k":
      step(-1);
      break;
    case "x":
      document.activeElement?.closest("[data-row]")?.querySelector<HTMLElement>("input[type=checkbox]")?.click();
      break;
    case "u":
      up();
      break;
    case "t":
      press("relative");
      break;
    case "z":
      press("zone");
      break;
    case "?":
      helpShown.value = true;
      break;
    default:
      return;
  }
  e.preventDefault();
}

export function Keys() {
  // Before the paint, since a key can be pressed as soon as the page is visible.
  useLayoutEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return null;
}

export function Help() {
  const box = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const dialog = box.current!;
    dialog.showModal();
    return () => {
      dialog.close(); // elements behind an open dialog take no focus
      before?.focus?.();
    };
  }, []);
  const close = () => (helpShown.value = false);
  return (
    <dialog ref={box} aria-labelledby="help-title" onClose={close} onClick={(e) => e.target === box.current && close()}>
      <form method="dialog">
        <h2 id="help-title">Keys</h2>
        <dl class="keys">
          {known.map(([key, does]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
        <div class="ends">
          <button class="main">Close</button>
        </div>
      </form>
    </dialog>
  );
}
