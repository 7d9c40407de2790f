import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { milliseconds, type Client, type LeasedMessage } from "./client.js";
import { Delivery, maxTimer, now, type Delivered, type Moment } from "./delivery.js";
import { TarryError } from "./error.js";
import { Keeper, pause } from "./keeper.js";
import { Settler } from "./settler.js";
import { failed, isVerdict, type Verdict } from "./verdict.js";

export type { Delivered };

/** Handles a message: when it returns, the message is acked; when it throws, it is retried. A Verdict says otherwise. */
export type Handler<T = unknown> = (message: Delivered<T>) => unknown;

export interface WorkerOptions {
  /** The name that look-ups, lists and failures show. Default: host:pid. */
  name?: string;
  /** How many messages of all queues are handled at a time. Default 100. */
  concurrency?: number;
  /** How long a lease lasts without renewal, such as "30s". Default: each message's own. */
  ttr?: string;
  /** In ms: then a handler's signal ends, and its lease is no longer renewed. Default: never. */
  handlerTimeout?: number;
  /** In ms: how long handlers may finish after stop; then their signals end. Default 30,000. */
  drainTimeout?: number;
  /** The signals that stop the worker. Default: SIGTERM and SIGINT. */
  signals?: NodeJS.Signals[];
  /** Gets what a handler threw, and with or without a message what went wrong with the server. Default: console.error. */
  onError?: (error: unknown, message?: Delivered) => void;
}

const wait = "20s"; // of a lease request
const maxUnconfirmed = 4096; // outcomes, so that a slow server slows the handlers down
const maxLease = 1000; // messages of a lease request
const grace = 5000; // ms for handlers whose signals the drain has ended, and for the last outcomes
const lastWord = 3000; // ms for the answer to a lease request that is ended

/** Worker leases due messages of its queues and handles many at a time. It runs once. */
export class Worker {
  readonly #client: Client;
  readonly #options: WorkerOptions & { name: string; concurrency: number; drainTimeout: number };
  readonly #handlers = new Map<string, Handler>();
  readonly #running = new Map<string, Delivery>(); // by queue and id
  readonly #settler: Settler;
  readonly #keeper: Keeper;
  readonly #stopping = new AbortController();
  #ran = false;
  #moved = () => {}; // a handler has finished, or an outcome is confirmed

  constructor(client: Client, options: WorkerOptions = {}) {
    this.#client = client;
    this.#options = { name: `${hostname().slice(0, 80)}:${process.pid}`, concurrency: 100, drainTimeout: 30_000, ...options };
    this.#settler = new Settler(client, ({ delivery, fails }, error) => {
      if (error && !delivery.lost) this.#report(fails > 0 && TarryError.is(error, "lease_lost") ? unconfirmed(error) : error, delivery);
      this.#moved();
    });
    this.#keeper = new Keeper(client, options.ttr, (error, delivery) => this.#report(error, delivery));
  }

  /** Sets the handler of a queue. */
  handle<T = unknown>(queue: string, handler: Handler<T>): this {
    if (this.#ran || this.#handlers.has(queue)) throw new Error(`handle("${queue}") comes twice, or after run`);
    this.#handlers.set(queue, handler as Handler);
    return this;
  }

  /**
   * Handles messages until stop is called or a signal comes. Then it leases no more, lets handlers finish, releases what
   * was not started, and resolves once all outcomes are settled. It rejects if handlers had to be interrupted, or
   * outcomes could not be sent.
   */
  async run(): Promise<void> {
    if (this.#ran || this.#handlers.size === 0) throw new Error("a worker runs once, and needs a handler");
    if (!(this.#options.concurrency >= 1)) throw new Error("a worker needs a concurrency of at least 1");
    this.#ran = true;
    const { signals = ["SIGTERM", "SIGINT"] } = this.#options;
    const stop = () => this.stop();
    for (const signal of signals) process.once(signal, stop);
    try {
      const failure = await this.#lease().catch((error: unknown) => error);
      this.stop();
      const late = await this.#drain();
      if (failure ?? late) throw failure ?? late;
    } finally {
      for (const signal of signals) process.off(signal, stop);
    }
  }

  /** Makes run drain and return. */
  stop(): void {
    this.#stopping.abort();
    this.#moved();
  }

  async #lease(): Promise<void> {
    const { signal } = this.#stopping;
    const queues = [...this.#handlers.keys()];
    for (let fails = 0; !signal.aborted; ) {
      const room = Math.min(this.#options.concurrency - this.#running.size, maxUnconfirmed - this.#settler.unconfirmed, maxLease);
      if (room <= 0) {
        await new Promise<void>((resolve) => (this.#moved = resolve));
        await nextTurn(); // others may finish too
        continue;
      }
      try {
        await this.#poll(queues, room);
        fails = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (TarryError.is(error, "invalid", "too_large", "unsupported")) throw error;
        this.#report(error);
        await sleep(pause(fails++), undefined, { signal }).catch(() => {});
      }
    }
  }

  async #poll(queues: string[], max: number): Promise<void> {
    const { name: worker, ttr } = this.#options;
    const poll = randomUUID();
    const hangUp = new AbortController();
    const sent = now();
    const answer = this.#client.lease({ queues, max, wait, worker, poll, ...(ttr && { ttr }) }, { signal: hangUp.signal });
    const over = answer.then(() => true, () => true);
    const end = () => void this.#end(poll, over, hangUp);
    this.#stopping.signal.addEventListener("abort", end, { once: true });
    await over;
    this.#stopping.signal.removeEventListener("abort", end);
    const leased = await answer;
    for (const { queue, error } of leased.queues ?? []) if (error) this.#report(new TarryError({ queue, ...error }));
    const waited = milliseconds(leased.waited ?? "");
    await this.#start(leased.messages, { steady: sent.steady + waited, wall: sent.wall + waited }, Date.parse(leased.now));
  }

  /** Ends a wait on the server, again and again as the call may overtake the wait itself. */
  async #end(poll: string, over: Promise<boolean>, hangUp: AbortController): Promise<void> {
    const until = performance.now() + lastWord;
    for (let rest = 10; performance.now() < until; rest *= 2) {
      await this.#client.request("POST", "/v1/lease/end", { body: { poll }, timeout: lastWord }).catch(() => {});
      if (await Promise.race([over, sleep(rest, false)])) return;
    }
    hangUp.abort();
  }

  async #start(messages: LeasedMessage[], began: Moment, serverNow: number): Promise<void> {
    const deliveries = messages.map((m) => new Delivery(m, began, m.lease_expires ? Date.parse(m.lease_expires) - serverNow : Infinity));
    const suspects = deliveries.filter((d) => suspect(d.message));
    if (suspects.length > 0) await this.#until(() => this.#settler.unconfirmed === 0 || this.#stopping.signal.aborted);
    let turn = performance.now();
    for (const delivery of [...suspects, ...deliveries.filter((d) => !suspects.includes(d))]) {
      if (performance.now() - turn > 10) {
        await nextTurn(); // renewals and answers come in between
        turn = performance.now();
      }
      this.#begin(delivery);
    }
  }

  #begin(delivery: Delivery): void {
    const { message } = delivery;
    const handler = this.#handlers.get(message.queue);
    if (!handler || this.#stopping.signal.aborted || delivery.doubtful()) return this.#settler.add(delivery, { do: "release" });
    const id = `${message.queue} ${message.id}`;
    // Its lease was lost, and its handler still runs here.
    if (this.#running.has(id)) return this.#settler.add(delivery, { do: "snooze", delay: "5s" });
    this.#running.set(id, delivery);
    if (delivery.length < Infinity) this.#keeper.add(delivery);
    void this.#handle(delivery, handler).then((settlement) => {
      this.#running.delete(id);
      this.#keeper.delete(delivery);
      if (settlement) this.#settler.add(delivery, settlement);
      this.#moved();
    });
  }

  async #handle(delivery: Delivery, handler: Handler): Promise<Verdict["settlement"]> {
    const { handlerTimeout } = this.#options;
    const timeOut = () => {
      delivery.renewable = false;
      delivery.abort(new Error(`the handler has run for ${handlerTimeout} ms`));
    };
    const timer = handlerTimeout ? setTimeout(timeOut, Math.min(handlerTimeout, maxTimer)) : undefined;
    try {
      const verdict = await handler(delivery.message);
      return isVerdict(verdict) ? verdict.settlement : { do: "ack" };
    } catch (error) {
      if (delivery.cut) return { do: "release" };
      if (!isVerdict(error)) this.#report(error, delivery);
      return failed(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Lets handlers finish and sends the last outcomes. Returns an error if that took too long. */
  async #drain(): Promise<Error | undefined> {
    const { drainTimeout } = this.#options;
    const quiet = () => this.#running.size === 0;
    const cut = (await within(this.#until(quiet), drainTimeout)) ? [] : [...this.#running.values()];
    for (const delivery of cut) {
      delivery.cut = true;
      delivery.abort(new Error("the worker is shutting down and its drain timeout is over"));
    }
    if (cut.length > 0) await within(this.#until(quiet), grace);
    await within(this.#until(() => this.#settler.unconfirmed === 0), grace);
    this.#keeper.close();
    this.#settler.close();
    if (cut.length > 0) return new Error(`${cut.length} handlers were interrupted after the drain timeout of ${drainTimeout} ms`);
    const left = this.#settler.unconfirmed;
    return left > 0 ? new Error(`${left} results could not be sent; these messages are handled again`) : undefined;
  }

  /** Waits until something is so, which a handler, an outcome or stop makes so. */
  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => (this.#moved = resolve));
  }

  async #report(error: unknown, delivery?: Delivery): Promise<void> {
    const { onError = log } = this.#options;
    try {
      await onError(error, delivery?.message);
    } catch (thrown) {
      console.error("tarry: onError threw", thrown);
    }
  }
}

/** Waits for a promise, and reports whether it was resolved in time. */
async function within(done: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(resolve, Math.min(ms, maxTimer), false)));
  return Promise.race([done.then(() => true), late]).finally(() => clearTimeout(timer));
}

/** Reports whether the message may have killed its process: its lease has lapsed although it was leased alone. */
const suspect = (m: LeasedMessage) => m.attempt > 2 && m.last_error === "lease lapsed";

function unconfirmed(cause: Error): TarryError {
  const message = `an answer to its result was lost, then: ${cause.message}`;
  return new TarryError({ code: "lease_lost", message, hint: "its result may have counted" }, { cause });
}

let logged = -Infinity;
let unlogged = 0;

/** Writes a line about an error, at most one a second. */
function log(error: unknown, message?: Delivered): void {
  const time = performance.now();
  if (time - logged < 1000) return void unlogged++;
  const of = message ? ` ${message.queue} ${message.key || message.id}:` : "";
  const what = error instanceof TarryError ? `${error.message} (${error.hint || error.code})` : error;
  console.error(`tarry:${of}`, what, unlogged > 0 ? `(and ${unlogged} more errors)` : "");
  logged = time;
  unlogged = 0;
}
