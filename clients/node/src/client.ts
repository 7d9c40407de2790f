import { maxTimer } from "./delivery.js";
import { refused, TarryError, unanswered } from "./error.js";
import type * as api from "./types.js";

/** One message of a queue, by key or by id; a string is a key. With if_state only in that state, else the call fails with "stale". */
export type Ref = string | (({ key: string } | { id: string }) & { if_state?: api.Message["state"] });

/** When a message is due. Delays are strings such as "1500ms", "30m" or "7d". */
export type When = { delay: string } | { due: string | Date };

/** The options of a push, as the HTTP API names them. */
export type PushOptions = Omit<api.NewMessage, "body" | "body_base64" | "due"> & { due?: string | Date };

/** A message to push with others. A body that is a Uint8Array is kept as bytes, any other as JSON. */
export type Draft = PushOptions & { queue: string; body?: unknown };

/** A message as the server has it. Its body is the JSON value, or a Buffer if it is not JSON. */
export type StoredMessage = Omit<api.Message, "body" | "body_base64"> & { body?: unknown };

/** A message that is leased to this process. */
export type LeasedMessage<T = unknown> = Omit<api.LeasedMessage, "body" | "body_base64"> & { body: T };

/** The answer to a lease request. */
export type Leased = Omit<api.Leased, "messages"> & { messages: LeasedMessage[] };

/** What became of the items of a call, in order: each alone, with its error if it failed. */
export interface Results<R> {
  results: Array<R | TarryError>;
  /** how many failed */
  failed: number;
}

export interface ClientOptions {
  /** The bearer token, where the server asks for one. Default: the password or user name in the URL, else $TARRY_TOKEN. */
  token?: string;
  /** How long a call may take, in ms, beside the time that it asks the server to wait. Default 30,000. */
  timeout?: number;
  /** Makes the requests. Default: the global fetch. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** In ms; default: the client's. */
  timeout?: number;
}

export interface Request extends CallOptions {
  query?: object;
  body?: unknown;
}

const { version } = require("../package.json") as { version: string };

/** A tarry server, by default that of $TARRY_SERVER. It holds no connection of its own, and need not be closed. */
export class Client {
  readonly url: string;
  readonly #headers: Record<string, string>;
  readonly #timeout: number;
  readonly #fetch: typeof fetch;

  constructor(url = process.env["TARRY_SERVER"] ?? "http://127.0.0.1:8277", options: ClientOptions = {}) {
    if (!/^https?:\/\//.test(url)) throw invalid(`"${url}" is not the address of a server such as http://127.0.0.1:8277`);
    const parsed = new URL(url);
    const token = options.token ?? (decodeURIComponent(parsed.password || parsed.username) || process.env["TARRY_TOKEN"]);
    this.url = parsed.origin + parsed.pathname.replace(/\/$/, "");
    this.#headers = { "Content-Type": "application/json", "User-Agent": `tarry-node/${version}` };
    if (token) this.#headers["Authorization"] = `Bearer ${token}`;
    this.#timeout = options.timeout ?? 30_000;
    this.#fetch = options.fetch ?? fetch;
  }

  /** Pushes a message. A body that is a Uint8Array is kept as bytes, any other as JSON. */
  async push(queue: string, body?: unknown, options: PushOptions = {}): Promise<api.Pushed> {
    return this.request("POST", `${queuePath(queue)}/messages`, { body: { ...options, ...encoded(body) } });
  }

  /** Pushes many messages. Each may fail alone; with atomic all are kept, or the call fails and none is. */
  async pushMany(drafts: Draft[], { atomic = false } = {}): Promise<Results<api.Pushed>> {
    const messages = drafts.map(({ body, ...draft }) => ({ ...draft, ...encoded(body) }));
    return this.request("POST", "/v1/messages", { body: { messages, atomic } }, sorted<api.Pushed>(drafts.length));
  }

  /** Makes the message with this key due later and keeps its body, or pushes it if there is none. */
  async rearm(queue: string, key: string, when: When, body?: unknown, options: PushOptions = {}): Promise<api.Pushed> {
    return this.request("PUT", refPath(queue, key), { body: { ...options, ...when, ...encoded(body) } });
  }

  /** Cancels a message: no handler starts for it any more. */
  async cancel(queue: string, ref: Ref): Promise<void> {
    return this.request("DELETE", refPath(queue, ref), { query: condition(ref) });
  }

  /** Cancels many messages, each alone. */
  async cancelMany(refs: api.Ref[]): Promise<Results<api.CancelResult>> {
    return this.request("POST", "/v1/cancel", { body: { refs } }, sorted<api.CancelResult>(refs.length));
  }

  /** Makes a message due at another time. */
  async reschedule(queue: string, ref: Ref, when: When): Promise<api.Message> {
    return this.request("PATCH", refPath(queue, ref), { query: condition(ref), body: when });
  }

  /** Looks a message up. One that has gone has the state "finished" and no body. */
  async get(queue: string, ref: Ref): Promise<StoredMessage | api.FinishedMessage> {
    return this.request("GET", refPath(queue, ref), {}, decoded<api.Message>);
  }

  /** Lists the messages of a queue, page by page, up to the limit. */
  async *list(
    queue: string,
    { limit = Infinity, ...query }: api.ListMessagesQuery = {},
  ): AsyncGenerator<StoredMessage | api.FinishedMessage, void> {
    while (limit > 0) {
      const some = { query: { ...query, limit: Math.min(limit, 100) } };
      const page = await this.request("GET", `${queuePath(queue)}/messages`, some, opened<api.MessagePage, StoredMessage | api.FinishedMessage>);
      yield* page.messages;
      if (!page.next) return;
      query.after = page.next;
      limit -= page.messages.length;
    }
  }

  /** Leases one message that is due. Settle it before its lease ends. */
  async claim<T = unknown>(queue: string, ref: Ref, options: api.Claim = {}): Promise<LeasedMessage<T>> {
    const path = `${refPath(queue, ref)}/claim`;
    return this.request("POST", path, { query: condition(ref), body: options }, decoded<api.LeasedMessage>) as Promise<LeasedMessage<T>>;
  }

  /** Leases due messages of some queues, and waits for the first as long as the request says. */
  async lease(request: api.LeaseRequest, options: CallOptions = {}): Promise<Leased> {
    const timeout = (options.timeout ?? this.#timeout) + (milliseconds(`${request.wait ?? 0}`) || 0);
    return this.request("POST", "/v1/lease", { ...options, timeout, body: request }, opened<api.Leased, LeasedMessage>);
  }

  /** Settles leased messages: ack, retry, snooze, release, bury or extend, each alone. */
  async settle(settlements: api.Settlement[], options: CallOptions = {}): Promise<Results<api.SettleResult>> {
    return this.request("POST", "/v1/settle", { ...options, body: { settlements } }, sorted<api.SettleResult>(settlements.length));
  }

  /** Makes any call of the HTTP API. The types of requests and answers are in the namespace api; read may change an answer. */
  async request<T, A = T>(method: string, path: string, request: Request = {}, read?: (answer: A) => T): Promise<T> {
    const { query = {}, body, signal, timeout = this.#timeout } = request;
    signal?.throwIfAborted();
    const sent: RequestInit = { method, headers: this.#headers, redirect: "manual" };
    if (body !== undefined) sent.body = json(body);
    const url = new URL(this.url + path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
    const call = new AbortController();
    const timer = setTimeout(() => call.abort(new Error(`no answer within ${timeout} ms`)), Math.min(timeout, maxTimer));
    const leave = () => call.abort(signal!.reason);
    signal?.addEventListener("abort", leave);
    try {
      const answer = await this.#fetch(url, { ...sent, signal: call.signal });
      const text = await answer.text();
      if (!answer.ok) throw refused(answer.status, text, this.url);
      const parsed: unknown = text ? JSON.parse(text) : undefined;
      return read ? read(parsed as A) : (parsed as T);
    } catch (error) {
      if (error instanceof TarryError || signal?.aborted) throw error;
      throw unanswered(this.url, error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", leave);
    }
  }
}

const units = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 0.001, µs: 0.001, ns: 0.000_001, d: 86_400_000 };

/** Returns the milliseconds of a duration such as "1m30s". */
export function milliseconds(duration: string): number {
  let sum = 0;
  for (const [, n, unit] of duration.matchAll(/([\d.]+)([a-zµ]+)/g)) sum += Number(n) * (units[unit as keyof typeof units] ?? NaN);
  return sum;
}

const invalid = (message: string) => new TarryError({ code: "invalid", message, hint: "" });

function json(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw invalid(`it cannot be written as JSON: ${error}`);
  }
}

/** Returns a part of a path. Dots alone would change the path, and half characters have no code there. */
function segment(name: string): string {
  if (typeof name !== "string" || /^\.{0,2}$|\p{Cs}/u.test(name)) throw invalid(`${json(name)} cannot be part of a path`);
  return encodeURIComponent(name);
}

const queuePath = (queue: string) => `/v1/queues/${segment(queue)}`;

function refPath(queue: string, ref: Ref): string {
  if (typeof ref === "string") ref = { key: ref };
  return "key" in ref ? `${queuePath(queue)}/keys/${segment(ref.key)}` : `${queuePath(queue)}/messages/${segment(ref.id)}`;
}

const condition = (ref: Ref) => ({ if_state: typeof ref === "string" ? undefined : ref.if_state });

function encoded(body: unknown): Pick<api.NewMessage, "body" | "body_base64"> {
  return body instanceof Uint8Array ? { body_base64: Buffer.from(body).toString("base64") } : { body };
}

function decoded<M extends { body?: unknown; body_base64?: string }>(message: M | api.FinishedMessage): Omit<M, "body_base64"> {
  const { body_base64: bytes, ...rest } = message as M;
  return bytes === undefined ? rest : { ...rest, body: Buffer.from(bytes, "base64") };
}

function opened<A extends { messages: Array<api.Message | api.FinishedMessage> }, M>(answer: A): Omit<A, "messages"> & { messages: M[] } {
  return { ...answer, messages: answer.messages.map((m) => decoded(m) as M) };
}

/** Returns how the answer to a call with so many items is read: it makes errors of those that failed. */
const sorted = <R extends object>(items: number) => (answer: { results: Array<R | { error?: api.Error }>; failed: number }): Results<R> => {
  const results = answer.results.map((result) => {
    if (!("error" in result)) return result as R;
    const { error, ok, lease, ...about } = result as { error: api.Error; ok?: boolean; lease?: string };
    return new TarryError({ ...about, ...error });
  });
  if (results.length !== items) throw new Error(`it answers with ${results.length} results for ${items} items`);
  return { results, failed: answer.failed };
};
