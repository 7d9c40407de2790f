import type { Client } from "./client.js";
import type { Delivery } from "./delivery.js";
import { TarryError } from "./error.js";
import { batchSize, pause } from "./keeper.js";
import type { Settlement } from "./types.js";

/** What became of a delivery, on its way to the server. */
export interface Outcome {
  delivery: Delivery;
  settlement: Settlement;
  fails: number; // calls that did not settle it
}

const gatherFor = 5; // ms that acks wait for others
const worth = 256; // outcomes that are worth a call at once
const slow = 100; // ms after which a second call is made beside one that may hang

/**
 * Settler sends outcomes to the server in batches: they gather for a moment, or while a call is under way. What could
 * not be sent is sent again until its lease is over.
 */
export class Settler {
  /** Outcomes that the server has not confirmed, and that are not given up. */
  unconfirmed = 0;
  #waiting: Outcome[] = [];
  #calls = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #closing = new AbortController();

  constructor(
    readonly client: Client,
    readonly done: (outcome: Outcome, error?: Error) => void,
  ) {}

  add(delivery: Delivery, settlement: Omit<Settlement, "lease">): void {
    this.unconfirmed++;
    this.#waiting.push({ delivery, settlement: { ...settlement, lease: delivery.message.lease }, fails: 0 });
    this.#arm(settlement.do !== "ack" || this.#waiting.length >= worth);
  }

  /** Gives up what has not been confirmed. */
  close(): void {
    clearTimeout(this.#timer);
    this.#closing.abort();
  }

  #arm(urgent = false): void {
    if (this.#waiting.length === 0 || this.#calls > 1 || this.#closing.signal.aborted) return;
    const beside = this.#calls === 1 && this.#waiting.length < batchSize;
    if (this.#timer && (beside || !urgent)) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#send(), beside ? slow : urgent ? 0 : gatherFor);
  }

  async #send(): Promise<void> {
    const batch = this.#waiting.splice(0, batchSize);
    this.#calls++;
    this.#timer = undefined;
    this.#arm();
    const results = await this.#settle(batch);
    this.#calls--;
    const again = batch.filter((outcome, i) => !this.#final(outcome, results[i]));
    const repeat = () => {
      this.#waiting.unshift(...again);
      this.#arm(true);
    };
    if (again.length > 0) setTimeout(repeat, pause(again[0]!.fails - 1));
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#arm(this.#waiting.length >= worth);
  }

  /** Sends outcomes in one call, or in several if the server refuses them together, as one of them is not well formed. */
  async #settle(batch: Outcome[]): Promise<unknown[]> {
    const options = { timeout: patience(batch), signal: this.#closing.signal };
    try {
      return (await this.client.settle(batch.map((o) => o.settlement), options)).results;
    } catch (error) {
      if (batch.length === 1 || !TarryError.is(error, "invalid", "too_large")) return batch.map(() => error);
      const half = batch.length >> 1;
      return [...(await this.#settle(batch.slice(0, half))), ...(await this.#settle(batch.slice(half)))];
    }
  }

  #final(outcome: Outcome, result: unknown): boolean {
    const error = result instanceof Error ? result : undefined;
    const settled = !error || TarryError.is(error, "lease_lost", "invalid", "not_found", "too_large", "unsupported");
    if (!settled && !this.#closing.signal.aborted && performance.now() < outcome.delivery.end) {
      outcome.fails++;
      return false;
    }
    this.unconfirmed--;
    this.done(outcome, error);
    return true;
  }
}

/** Returns the timeout of a call: a quarter of what the shortest lease has left, so that it can be repeated in time. */
function patience(batch: Outcome[]): number {
  const end = Math.min(...batch.map((o) => o.delivery.end));
  return Math.min(Math.max((end - performance.now()) / 4, 250), 30_000);
}
