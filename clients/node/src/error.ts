import type { Error as Refusal } from "./types.js";

/** What programs act on; docs/http.md explains each code. */
export type ErrorCode = Refusal["code"];

export interface TarryError extends Refusal {}

/**
 * The error of every call. A call without an answer has the code "unavailable", and its outcome is unknown. When a
 * message is in the way of a push, the fields id, queue, key, due, state, ending and ended describe it.
 */
export class TarryError extends Error {
  constructor(refusal: Refusal, options?: ErrorOptions) {
    super(refusal.message, options);
    this.name = "TarryError";
    const { message: _, ...fields } = refusal;
    Object.assign(this, fields);
  }

  /** Reports whether an error has one of these codes. It also knows errors of another copy of this package. */
  static is(error: unknown, ...codes: ErrorCode[]): error is TarryError {
    return error instanceof Error && error.name === "TarryError" && codes.includes((error as TarryError).code);
  }
}

/** Returns the error for an answer that reports one, from tarry or from something before it. */
export function refused(status: number, text: string, url: string): TarryError {
  try {
    const { error } = JSON.parse(text) as { error: Refusal };
    if (typeof error.code === "string") return new TarryError(error);
  } catch {
    // It is not of tarry: a proxy's, or plain text of the HTTP server.
  }
  return new TarryError({ code: "unavailable", message: `${url} answers ${status}, but not as tarry does`, hint: text.slice(0, 200).trim() });
}

/** Returns the error of a call that got no answer. */
export function unanswered(url: string, cause: unknown): TarryError {
  const why = cause instanceof Error ? (cause.cause instanceof Error ? cause.cause : cause).message : String(cause);
  return new TarryError(
    { code: "unavailable", message: `${url} does not answer: ${why}`, hint: "whether the call was carried out is unknown" },
    { cause },
  );
}
