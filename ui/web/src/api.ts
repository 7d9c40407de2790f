// The calls of the API, relative to the page, wherever that is mounted.
import { signal } from "@preact/signals";

export type State = "scheduled" | "ready" | "leased" | "dead" | "finished";

export interface Queue {
  queue: string;
  scheduled: number;
  ready: number;
  leased: number;
  dead: number;
  finished: number;
  next_due: string | null;
  oldest_ready: string | null;
  paused: boolean;
  paused_until?: string | null;
  // What events tell beside.
  changes?: number;
  pushed_per_s?: number;
  acked_per_s?: number;
  trend?: { lateness: { p50_ms: number | null; p99_ms: number | null } } | null;
  gone?: boolean;
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
  trends?: boolean; // it keeps what happened
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

// Failure is what the API answers when it does not do what it was asked.
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

// How far the server's clock is ahead of ours, in milliseconds.
let ahead = 0;

// now is the server's time, as well as we know it.
export function now(): number {
  return Date.now() + ahead;
}

// reached tells whether the last call came through.
export const reached = signal(true);

// ended is set when the API wants a token that we have not.
export const ended = signal(false);

export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { "Tarry-Exact": "true" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
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
    throw new Failure(0, "unreachable", "the server does not answer", method === "GET" ? "" : "whether it was done is not known: look before you try again");
  }
  reached.value = true;
  const date = Date.parse(answer.headers.get("Date") ?? "");
  if (Math.abs(date + 500 - now()) > 1500) ahead = date + 500 - Date.now(); // the header knows seconds
  const text = await answer.text();
  let value: any = null;
  try {
    value = text === "" ? null : JSON.parse(text);
  } catch {
    throw new Failure(answer.status, "internal", "the answer is no JSON", "is there a proxy in between?");
  }
  if (answer.ok) return value as T;
  if (answer.status === 401 && path !== "session") ended.value = true;
  const e = value?.error ?? {};
  throw new Failure(answer.status, e.code ?? "internal", e.message ?? `the server answered ${answer.status}`, e.hint ?? "");
}

export const get = <T>(path: string, signal?: AbortSignal) => call<T>("GET", path, undefined, signal);
export const post = <T>(path: string, body: unknown = {}, signal?: AbortSignal) => call<T>("POST", path, body, signal);

// at is the path of a queue, and of what is below it.
export function at(queue: string, ...below: string[]): string {
  return ["v1/queues", queue, ...below].map((s, i) => (i === 0 ? s : encodeURIComponent(s))).join("/");
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
}

export function list(queue: string, q: ListQuery, signal?: AbortSignal): Promise<Page> {
  const p = new URLSearchParams();
  for (const [name, value] of Object.entries(q)) if (value) p.set(name, String(value));
  return get<Page>(`${at(queue, "messages")}?${p}`, signal);
}

// say is what of a failure is told to people.
export function say(err: unknown): string {
  if (err instanceof Failure) return err.hint ? `${err.message} (${err.hint})` : err.message;
  return err instanceof Error ? err.message : String(err);
}
