import type { LeasedMessage } from "./client.js";

/** A moment by two clocks: the one in ms does not step, but stops while the machine is suspended. */
export interface Moment {
  steady: number;
  wall: number;
}

export const now = (): Moment => ({ steady: performance.now(), wall: Date.now() });

export const maxTimer = 2 ** 31 - 1; // ms: a longer timer would be over at once

/** A message as a handler gets it. */
export type Delivered<T = unknown> = LeasedMessage<T> & {
  /** Ends when the lease is lost, the handler's time is over, or the drain has taken too long. */
  readonly signal: AbortSignal;
};

/** A leased message in the worker, and its lease by the clocks of this process. */
export class Delivery {
  readonly message: Delivered;
  readonly length: number; // of the lease, in ms; Infinity: it has no end
  end: number;
  renewAt: number;
  renewing = false;
  renewable = true; // false: the lease is left to its end
  lost = false; // another worker may have the message
  cut = false; // the drain has ended its signal
  readonly #abort = new AbortController();
  #wallEnd: number;

  /** The lease began at a moment, or shortly after it. */
  constructor(message: LeasedMessage, began: Moment, length: number) {
    this.message = Object.assign(message, { signal: this.#abort.signal });
    this.length = length;
    this.end = began.steady + length;
    this.#wallEnd = began.wall + length;
    this.renewAt = this.end - length / 2;
  }

  /** Notes that the lease was made to last its length again by a request at a moment. */
  renewed(sent: Moment): void {
    this.end = sent.steady + this.length;
    this.#wallEnd = sent.wall + this.length;
    this.renewAt = this.end - this.length / 2;
  }

  /** Reports whether the lease may be over by either clock. */
  doubtful(): boolean {
    const { steady, wall } = now();
    return steady >= this.end || wall >= this.#wallEnd;
  }

  abort(why: unknown): void {
    this.#abort.abort(why);
  }
}
