// Questions before an action, and messages after it.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { say } from "./api";

export interface Question {
  title: string;
  text?: ComponentChildren;
  fields?: ComponentChildren; // act gets their values by name
  yes: string;
  danger?: boolean;
  wide?: boolean;
  act: (values: FormData) => Promise<Done | void>;
}

// Done is the message after an action, and how to undo it.
export interface Done {
  text: string;
  undo?: () => Promise<Done | void>;
  bad?: boolean; // it was not all done
}

const open = signal<Question | null>(null);
const told = signal<(Done & { id: number })[]>([]);
let last = 0;

export function ask(q: Question): void {
  open.value = q;
}

export function tell(done: Done, bad = done.bad): void {
  const id = ++last;
  told.value = [...told.value.slice(-2), { ...done, id, bad }];
  setTimeout(() => dismiss(id), done.undo ? 15_000 : bad ? 12_000 : 5_000);
}

function dismiss(id: number): void {
  told.value = told.value.filter((t) => t.id !== id);
}

// act does something and shows how it went.
export async function act(what: () => Promise<Done | void>): Promise<void> {
  try {
    const done = await what();
    if (done) tell(done);
  } catch (err) {
    tell({ text: say(err) }, true);
  }
}

export function Dialogs() {
  return (
    <>
      {open.value && <Ask key={open.value.title} q={open.value} />}
      <div class="toasts" role="status" aria-live="polite">
        {told.value.map((t) => (
          <div key={t.id} class={`toast ${t.bad ? "bad" : ""}`}>
            <span>{t.text}</span>
            {t.undo && (
              <button class="link" onClick={() => (dismiss(t.id), void act(t.undo!))}>
                Undo
              </button>
            )}
            <button class="link" aria-label="Dismiss" onClick={() => dismiss(t.id)}>
              ✕
            </button>
          </div>
        ))}
      </div>
    </>
  );
}

function Ask({ q }: { q: Question }) {
  const box = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const dialog = box.current!;
    dialog.showModal();
    return () => {
      dialog.close(); // elements behind an open dialog take no focus
      before?.focus?.();
    };
  }, []);
  const close = () => {
    if (open.value === q) open.value = null;
  };
  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy) return;
    setBusy(true);
    setError("");
    try {
      const done = await q.act(new FormData(e.target as HTMLFormElement));
      close();
      if (done) tell(done);
    } catch (err) {
      setError(say(err));
      setBusy(false);
    }
  };
  return (
    <dialog ref={box} class={q.wide ? "wide" : ""} aria-labelledby="ask-title" onCancel={close} onClose={close} onClick={(e) => e.target === box.current && !busy && close()}>
      <form onSubmit={submit}>
        <h2 id="ask-title">{q.title}</h2>
        {q.text && <div class="text">{q.text}</div>}
        {q.fields}
        {error && (
          <p class="trouble" role="alert">
            {error}
          </p>
        )}
        <div class="ends">
          <button type="button" onClick={close} disabled={busy}>
            Back
          </button>
          <button class={q.danger ? "danger" : "main"} disabled={busy}>
            {busy ? "…" : q.yes}
          </button>
        </div>
      </form>
    </dialog>
  );
}
