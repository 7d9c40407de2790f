export { Client } from "./client.js";
export type { CallOptions, ClientOptions, Draft, Leased, LeasedMessage, PushOptions, Ref, Request, Results, StoredMessage, When } from "./client.js";
export { TarryError } from "./error.js";
export type { ErrorCode } from "./error.js";
export { bury, retryIn, settled, snooze, Verdict } from "./verdict.js";
export { Worker } from "./worker.js";
export type { Delivered, Handler, WorkerOptions } from "./worker.js";
export type * as api from "./types.js";
