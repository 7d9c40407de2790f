// The calls of the API, relative to the page, wherever that is mounted.
import { signal } from "@preact/signals";

export type State = "scheduled" | "ready" | "leased" | "dead" | "finished";

export interface Queue {
  queue: string;
  scheduled: number;
  ready: number;
  leased: number;
  dead: number;
  finished: number; // keys that are remembered
  history?: number; // finished messages that are listed
  next_due: string | null;
  oldest_ready: string | null;
  paused: boolean;
  paused_until?: string | null;
  // Only events have these.
  changes?: number;
  pushed_per_s?: number;
  acked_per_s?: number;
  trend?: { lateness: { p50_ms: number | null; p99_ms: number | null } } | null;
  gone?: boolean;
}

export interface Failed {
  at: string;
  attempt: number;
  worker: string;
  error: string;
}

export interface Message {
  id: string;
  queue: string;
  key: string;
  state: State;
  due: string;
  created: string;
  attempt: number;
  max_attempts: number;
  priority: number;
  ttr: string;
  headers: Record<string, string | string[]> | [string, string][];
  content_type: string;
  last_error: string;
  failures?: Failed[]; // the last ones, oldest first
  worker?: string; // who has it, or acked or cancelled it
  started?: string; // when the lease began that it has, or was acked with
  body_base64?: string;
  backoff?: string[];
  expire_after?: string;
  remember?: string;
  expires?: string;
  died?: string;
  lease_expires?: string;
  ending?: string;
  ended?: string;
  forgotten?: string;
}

export interface Info {
  version: string;
  engine: string;
  capabilities: Record<string, boolean>;
  limits: Record<string, number | string>;
  trends?: boolean; // it keeps trends
  beanstalk?: { connections: number; waiting: number }; // clients of beanstalkd's protocol; missing: it is not served
  now: string;
}

export interface Me {
  name: string;
  scopes: string[];
  queues: string[];
  expires: string | null;
}

export interface Standing {
  needed: boolean;
  session: boolean;
  read_only: boolean;
  me: Me | null;
}

export interface Settings {
  settings: Record<string, unknown>;
  revision: string;
}

// Failure is an error of the API.
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

// ahead is how far the server's clock is ahead of ours, in milliseconds.
let ahead = 0;

// now is our best estimate of the server's time.
export function now(): number {
  return Date.now() + ahead;
}

// reached is whether the last call got an answer.
export const reached = signal(true);

// ended is set when the API asks for a token.
export const ended = signal(false);

// send sends a request and returns the answer, or throws if there is none.
async function send(method: string, path: string, body: unknown, signal: AbortSignal | undefined, accept?: string): Promise<Response> {
  const headers: Record<string, string> = { "Tarry-Exact": "true" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (accept) headers["Accept"] = accept;
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ?? null,
      credentials: "same-origin",
      redirect: "error",
      cache: "no-store",
    });
  } catch (err) {
    if (signal?.aborted) throw err;
    reached.value = false;
    throw new Failure(0, "unreachable", "the server does not answer", method === "GET" ? "" : unknown);
  }
  reached.value = true;
  const date = Date.parse(answer.headers.get("Date") ?? "");
  if (Math.abs(date + 500 - now()) > 1500) ahead = date + 500 - Date.now(); // the header has whole seconds
  return answer;
}

const unknown = "it may or may not have been done: check before you try again";

// parse reads an answer, or a line of it.
function parse(answer: Response, text: string): any {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    throw new Failure(answer.status, "internal", "the answer is not JSON", "is there a proxy in between?");
  }
}

function failure(answer: Response, value: any): Failure {
  const e = value?.error ?? {};
  return new Failure(answer.status, e.code ?? "internal", e.message ?? `the server answered ${answer.status}`, e.hint ?? "");
}

export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const answer = await send(method, path, body, signal);
  const value = parse(answer, await answer.text());
  if (answer.ok) return value as T;
  if (answer.status === 401 && path !== "session") ended.value = true;
  throw failure(answer, value);
}

// Swept is the progress of a redrive or drop.
export interface Swept {
  count: number;
  skipped: number;
  seen: number;
  to?: string; // messages that died by then are included
  done?: boolean;
}

// sweep redrives or drops dead letters and reports each chunk. It returns the last
// progress, also when it was stopped.
export async function sweep(path: string, body: unknown, told: (s: Swept) => void, stop: AbortSignal): Promise<Swept> {
  let last: Swept = { count: 0, skipped: 0, seen: 0 };
  try {
    const answer = await send("POST", path, body, stop, "application/x-ndjson");
    if (!answer.ok || !answer.body) {
      if (answer.status === 401) ended.value = true;
      throw failure(answer, parse(answer, await answer.text()));
    }
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + part.value).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        const s = parse(answer, line);
        last = s;
        told(s);
        if (s.error) throw failure(answer, s);
      }
    }
  } catch (err) {
    if (stop.aborted) return last;
    if (err instanceof Failure) throw err;
    throw new Failure(0, "unreachable", `the connection broke when ${last.count} were done`, unknown);
  }
  if (!last.done) throw new Failure(0, "unreachable", `the answer ended when ${last.count} were done`, unknown);
  return last;
}

export const get = <T>(path: string, signal?: AbortSignal) => call<T>("GET", path, undefined, signal);
export const post = <T>(path: string, body: unknown = {}, signal?: AbortSignal) => call<T>("POST", path, body, signal);

// at is the path of a queue or of something below it.
export function at(queue: string, ...below: string[]): string {
  return ["v1/queues", queue, ...below].map((s, i) => (i === 0 ? s : encodeURIComponent(s))).join("/");
}

// Found is a part of the messages that a search finds.
export interface Found {
  messages: Message[];
  next: string;
  read: number; // how many were looked at
}

export interface Worker {
  name: string;
  address: string;
  queues: string[];
  more_queues: boolean;
  leased: number;
  handled: number;
  failed: number;
  since: string | null;
  seen: string | null;
  version: string;
  elsewhere: boolean;
}

export interface Schedule {
  name: string;
  spec: string;
  zone?: string;
  jitter?: string;
  catch_up?: "last" | "skip" | "all";
  start?: string;
  end?: string;
  message: Partial<Message> & { queue: string };
  state: "active" | "paused" | "ended";
  revision: string;
  changed: string;
  next: string | null; // null: it does not fire
  error?: string; // why it could not fire
  runs?: Run[]; // the newest first; not in lists
}

// Run is a message that a schedule has pushed.
export interface Run {
  instant: string;
  pushed: string;
  key: string;
  id: string;
  manual: boolean;
  state?: State; // missing: not known any more
  ending?: string;
  started?: string;
  late?: string;
  ended?: string;
  error?: string;
}

// Times are when a schedule fires.
export interface Times {
  next: string[];
  explain: string[];
}

// schedule is the path of a schedule or of something below it.
export const schedule = (name: string, below = "") => `v1/schedules/${encodeURIComponent(name)}${below && "/" + below}`;

export interface Intake {
  name: string;
  queue: string;
  state: string;
  since: string;
  error?: string;
  hint?: string;
  taken: number;
  pushed: number;
  doubles: number;
  refused: number;
  unacked: number;
  last_refused?: string;
}

export interface Page {
  messages: Message[];
  next: string;
}

export interface ListQuery {
  state: State;
  from?: string;
  to?: string;
  order?: "asc" | "desc";
  after?: string;
  limit?: number;
  body?: boolean;
}

export function list(queue: string, q: ListQuery, signal?: AbortSignal): Promise<Page> {
  const p = new URLSearchParams();
  for (const [name, value] of Object.entries(q)) if (value) p.set(name, String(value));
  return get<Page>(`${at(queue, "messages")}?${p}`, signal);
}

// say is the text of an error for people.
export function say(err: unknown): string {
  if (err instanceof Failure) return err.hint ? `${err.message} (${err.hint})` : err.message;
  return err instanceof Error ? err.message : String(err);
}
