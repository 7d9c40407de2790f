import type { Client } from "./client.js";
import { maxTimer, now, type Delivery } from "./delivery.js";
import { TarryError } from "./error.js";

/** How many settlements go in one call. */
export const batchSize = 1000;

/** Returns how long to wait after so many failures in a row, in ms. */
export const pause = (fails: number) => Math.min(50 * 2 ** Math.min(fails, 10), 5000);

/** Keeper renews each lease after half of its time, and ends the signal of a handler whose lease is lost. */
export class Keeper {
  readonly #deliveries = new Set<Delivery>();
  #timer: NodeJS.Timeout | undefined;
  #wakesAt = Infinity;

  constructor(
    readonly client: Client,
    readonly ttr: string | undefined,
    readonly report: (error: unknown, delivery?: Delivery) => void,
  ) {}

  add(delivery: Delivery): void {
    this.#deliveries.add(delivery);
    this.#wakeAt(delivery.renewAt);
  }

  delete(delivery: Delivery): void {
    this.#deliveries.delete(delivery);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#deliveries.clear();
  }

  #wakeAt(time: number): void {
    if (time >= this.#wakesAt) return;
    this.#wakesAt = time;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), Math.min(Math.max(time - performance.now(), 0), maxTimer));
  }

  #look(): void {
    const time = performance.now();
    const renew: Delivery[] = [];
    let next = Infinity;
    for (const d of this.#deliveries) {
      if (!d.lost && time >= d.end) this.#lose(d, "lapsed", "it could not be renewed before its end");
      // What is nearly due joins what is due, to save calls.
      else if (d.renewable && !d.renewing && time >= d.renewAt - d.length / 16) renew.push(d);
      else if (!d.lost) next = Math.min(next, d.end, d.renewable && !d.renewing ? d.renewAt : Infinity);
    }
    this.#wakesAt = Infinity;
    for (let i = 0; i < renew.length; i += batchSize) void this.#renew(renew.slice(i, i + batchSize));
    this.#wakeAt(next);
  }

  async #renew(batch: Delivery[]): Promise<void> {
    for (const d of batch) {
      d.renewing = true;
      this.#wakeAt(d.end);
    }
    const sent = now();
    const shortest = Math.min(...batch.map((d) => d.length));
    const timeout = Math.min(Math.max(shortest / 8, 250), 30_000); // a call that hangs is repeated in time
    const extend = batch.map((d) => ({ lease: d.message.lease, do: "extend" as const, ...(this.ttr && { ttr: this.ttr }) }));
    let errors: unknown[];
    try {
      errors = (await this.client.settle(extend, { timeout })).results.map((r) => (r instanceof TarryError ? r : undefined));
    } catch (error) {
      this.report(error);
      errors = batch.map(() => error);
    }
    const time = performance.now();
    batch.forEach((d, i) => {
      const error = errors[i];
      d.renewing = false;
      if (!this.#deliveries.has(d)) return; // its handler has finished: the settlement decides
      if (!error) d.renewed(sent);
      else if (TarryError.is(error, "lease_lost")) this.#lose(d, "lost", error.message);
      else d.renewAt = time + Math.max(d.length / 16, 50);
    });
    this.#look();
  }

  #lose(d: Delivery, how: string, why: string): void {
    if (d.lost) return;
    d.lost = true;
    const error = new TarryError({ code: "lease_lost", message: `the lease is ${how}: ${why}`, hint: "" });
    d.abort(error);
    this.report(error, d);
  }
}
