// What all pages share: header, login, choice of the page.
import { useEffect, useRef, useState } from "preact/hooks";
import { reached, say } from "./api";
import { About } from "./about";
import { DeadLetters } from "./dead";
import { Dialogs } from "./dialog";
import { Find } from "./find";
import { Help, helpShown, Keys } from "./keys";
import { MessagePage } from "./message";
import { Overview } from "./overview";
import { QueuePage } from "./queue";
import { go, route, toDead, toFind, toQueues, toSchedules, toWorkers } from "./route";
import { SchedulePage, Schedules } from "./schedules";
import { begin, can, info, logIn, logOut, needsLogin, standing } from "./session";
import { trouble } from "./store";
import { clock, zone } from "./time";
import { Works } from "./work";
import { Workers } from "./workers";

export function App() {
  const [error, setError] = useState<unknown>(null);
  const start = () => {
    setError(null);
    begin().catch(setError);
  };
  useEffect(start, []);
  if (needsLogin.value) return <Login />;
  if (!standing.value)
    return (
      <main class="lone">
        {error ? (
          <p class="trouble" role="alert">
            {say(error)} <button class="link" onClick={start}>Try again</button>
          </p>
        ) : (
          <p class="muted">Loading…</p>
        )}
      </main>
    );
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById("main")?.focus())}>
        Skip to the content
      </a>
      <Head />
      <Works />
      <Page />
      <Dialogs />
      <Keys />
      {helpShown.value && <Help />}
    </>
  );
}

function Head() {
  const { page } = route.value;
  const s = standing.value!;
  const state = !reached.value || trouble.value ? "off" : "live";
  return (
    <header class={`top ${page === "queues" || page === "find" ? "searches" : ""}`}>
      <a class="brand" href={toQueues()} aria-label="tarry, all queues">
        <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
          <rect x="4" y="5" width="5" height="22" rx="2.5" />
          <rect x="13" y="12" width="5" height="15" rx="2.5" />
          <circle cx="25" cy="24" r="3" />
        </svg>
        tarry
      </a>
      <nav aria-label="Pages">
        <a href={toQueues()} aria-current={page === "queues" || page === "queue" || page === "message" ? "page" : undefined}>Queues</a>
        <a href={toDead()} aria-current={page === "dead" ? "page" : undefined}>Dead letters</a>
        <a href={toSchedules()} aria-current={page === "schedules" || page === "schedule" ? "page" : undefined}>Schedules</a>
        <a href={toWorkers()} aria-current={page === "workers" ? "page" : undefined}>Workers</a>
        <a href="#/about" aria-current={page === "about" ? "page" : undefined}>About</a>
      </nav>
      {can("list") && <SearchBox />}
      <div class="tools">
        <span class={`live ${state}`} title={state === "live" ? "This page is up to date" : say(trouble.value ?? "the server does not answer")}>
          <i aria-hidden="true" />
          <span>{state === "live" ? "Live" : "Not connected"}</span>
        </span>
        <button class="quiet" title="Show times relative to now, or exactly" onClick={() => (clock.value = clock.value === "relative" ? "exact" : "relative")}>
          {clock.value === "relative" ? "Relative" : "Exact"}
        </button>
        <button class="quiet" title="Show times in your zone, or in UTC" onClick={() => (zone.value = zone.value === "utc" ? "local" : "utc")}>
          {zone.value === "utc" ? "UTC" : "Local"}
        </button>
        <button class="quiet" aria-label="Keyboard help" title="Keyboard help (?)" onClick={() => (helpShown.value = true)}>
          ?
        </button>
        {(s.read_only || (s.me && !s.me.scopes.some((x) => x === "admin" || x === "operate" || x === "push"))) && <span class="badge soft">read only</span>}
        {s.session && (
          <button class="quiet" title={`Log out ${s.me?.name ?? ""}`} onClick={() => void logOut()}>
            Log out
          </button>
        )}
      </div>
    </header>
  );
}

function SearchBox() {
  const text = route.value.page === "find" ? route.value.query.get("q") ?? "" : "";
  const submit = (e: Event) => {
    e.preventDefault();
    const wanted = String(new FormData(e.currentTarget as HTMLFormElement).get("search") ?? "").trim();
    if (wanted) go(toFind(wanted));
  };
  return (
    <form class="find" role="search" aria-label="All queues" onSubmit={submit}>
      <label>
        <span class="offscreen">Search all queues by key, key* or header:value</span>
        <input key={text} type="search" name="search" defaultValue={text} placeholder="Key, key* or header:value" spellcheck={false} />
      </label>
      <kbd aria-hidden="true">s</kbd>
    </form>
  );
}

function Page() {
  const r = route.value;
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  const where = `${r.page}/${r.queue}/${r.id}`;
  useEffect(() => {
    const name = { queues: "Queues", queue: r.queue, message: `${r.id} in ${r.queue}`, dead: "Dead letters", schedules: "Schedules", schedule: r.id, workers: "Workers", find: "Search", about: "About" }[r.page];
    document.title = `${name} · tarry`;
    if (!first.current) {
      scrollTo(0, 0);
      main.current?.focus({ preventScroll: true });
    }
    first.current = false;
  }, [where]);
  return (
    <main id="main" ref={main} tabIndex={-1}>
      {r.page === "queues" && <Overview />}
      {r.page === "queue" && <QueuePage key={r.queue} queue={r.queue} />}
      {r.page === "message" && <MessagePage key={where} queue={r.queue} id={r.id} />}
      {r.page === "dead" && <DeadLetters />}
      {r.page === "schedules" && <Schedules />}
      {r.page === "schedule" && <SchedulePage key={r.id} name={r.id} />}
      {r.page === "workers" && <Workers />}
      {r.page === "find" && <Find />}
      {r.page === "about" && <About />}
    </main>
  );
}

function Login() {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (e: Event) => {
    e.preventDefault();
    const form = e.target as HTMLFormElement;
    setBusy(true);
    setError("");
    try {
      await logIn(String(new FormData(form).get("token")).trim());
    } catch (err) {
      setError(say(err));
      form.querySelector("input")?.select();
    }
    setBusy(false);
  };
  return (
    <main class="lone">
      <form class="login" onSubmit={submit}>
        <h1>tarry</h1>
        <p class="muted">This server asks for a token. You see and do what the token allows.</p>
        <label>
          Token
          <input name="token" type="password" autocomplete="current-password" spellcheck={false} required autofocus placeholder="tarry_…" aria-describedby={error ? "login-error" : undefined} />
        </label>
        {error && (
          <p id="login-error" class="trouble" role="alert">
            {error}
          </p>
        )}
        <button class="main" disabled={busy}>
          {busy ? "Asking…" : "Log in"}
        </button>
        <p class="faint">
          Create one with <code>tarry token create NAME --scope read</code>.
        </p>
      </form>
    </main>
  );
}

export const version = () => info.value?.version ?? "";
