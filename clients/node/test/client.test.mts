import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createSilent, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { promisify } from "node:util";
import { Client, TarryError, type ErrorCode } from "@tarryhq/client";
import { command, kill, newQueue, serve, tarry, temporary } from "./support.mjs";

/** Expects a call to fail with a code, and returns the error. */
async function fails(call: Promise<unknown>, code: ErrorCode): Promise<TarryError> {
  const error = await call.then(() => undefined, (error: unknown) => error);
  assert.ok(error instanceof TarryError && TarryError.is(error, code), `${error} is not ${code}`);
  return error;
}

/** Makes a server listen until the test ends, and returns its URL. */
async function listen(server: Server, t: TestContext): Promise<string> {
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

test("push, get and cancel by key and by id", async () => {
  const queue = newQueue();
  const pushed = await tarry.push(queue, { order: "42" }, { delay: "30m", key: "42", headers: { shop: "1" } });
  assert.equal(pushed.outcome, "created");
  const found = await tarry.get(queue, "42");
  assert.ok("body" in found);
  assert.deepEqual([found.state, found.id, found.body, found.headers], ["scheduled", pushed.id, { order: "42" }, { shop: "1" }]);
  await tarry.cancel(queue, { id: pushed.id });
  await fails(tarry.get(queue, "42"), "not_found");

  await tarry.push(queue, 1, { delay: "30m", key: "43", remember: "1h" });
  await fails(tarry.cancel(queue, { key: "43", if_state: "ready" }), "stale");
  await tarry.cancel(queue, { key: "43", if_state: "scheduled" });
  const gone = await tarry.get(queue, "43");
  assert.deepEqual([gone.state, "ending" in gone && gone.ending], ["finished", "cancelled"]);
});

test("a push of a live key fails and describes the message in the way", async () => {
  const queue = newQueue();
  const due = new Date(Date.now() + 3_600_000);
  const first = await tarry.push(queue, 1, { key: "a", due });
  assert.equal(Date.parse(first.due!), due.getTime());
  const error = await fails(tarry.push(queue, 2, { key: "a" }), "exists");
  assert.deepEqual([error.id, error.queue, error.key, error.due, error.state], [first.id, queue, "a", first.due, "scheduled"]);
  assert.equal((await tarry.push(queue, 2, { key: "a", on_conflict: "keep" })).outcome, "kept");
});

test("keys and bodies of any kind arrive as they were", async () => {
  const queue = newQueue();
  for (const key of ["a/b", "ä ö%2F?#&", "...", "日本"]) {
    for (const body of [null, "text", [1, { b: "ä" }], 0, false, Buffer.from([0, 255, 10])]) {
      await tarry.push(queue, body, { key, delay: "1h" });
      const found = await tarry.get(queue, key);
      assert.deepEqual("body" in found && found.body, body);
      await tarry.cancel(queue, key);
    }
  }
  for (const key of [".", "..", ""]) await fails(tarry.get(queue, key), "invalid");
});

test("push many", async () => {
  const queue = newQueue();
  const drafts = [{ queue, key: "a", body: 1, delay: "1h" }, { queue, key: "a", body: 2 }, { queue, delay: "soon" }, { queue, body: Buffer.from("x") }];
  const { results, failed } = await tarry.pushMany(drafts);
  assert.equal(failed, 2);
  const [a, exists, invalid, last] = results;
  assert.ok(a && !(a instanceof TarryError) && last && !(last instanceof TarryError));
  assert.deepEqual([a.key, a.state, last.state], ["a", "scheduled", "ready"]);
  assert.ok(TarryError.is(exists, "exists") && exists.id === a.id && TarryError.is(invalid, "invalid") && invalid.hint !== "");

  const other = newQueue();
  await fails(tarry.pushMany([{ queue: other }, { queue, key: "a" }], { atomic: true }), "exists");
  assert.deepEqual(await all(tarry.list(other)), []);
});

test("cancel many", async () => {
  const queue = newQueue();
  await tarry.pushMany(["a", "b"].map((key) => ({ queue, key, delay: "1h" })));
  const { results, failed } = await tarry.cancelMany([{ queue, key: "a" }, { queue, key: "c" }, { queue, key: "b", if_state: "dead" }]);
  assert.equal(failed, 2);
  assert.ok(!(results[0] instanceof TarryError) && TarryError.is(results[1], "not_found") && TarryError.is(results[2], "stale"));
  assert.equal(results[1].key, "c");
  assert.deepEqual((await all(tarry.list(queue))).map((m) => m.key), ["b"]);
});

test("reschedule and rearm", async () => {
  const queue = newQueue();
  await tarry.push(queue, "first", { key: "a", delay: "1h" });
  const due = new Date(Date.now() + 7_200_000);
  const moved = await tarry.reschedule(queue, "a", { due });
  assert.equal(Date.parse(moved.due!), due.getTime());
  await fails(tarry.reschedule(queue, "b", { delay: "1h" }), "not_found");

  assert.equal((await tarry.rearm(queue, "a", { delay: "3h" }, "second")).outcome, "replaced");
  const kept = await tarry.get(queue, "a");
  assert.ok("body" in kept && Date.parse(kept.due!) > due.getTime());
  assert.equal(kept.body, "first");
  assert.equal((await tarry.rearm(queue, "b", { due }, "new", { priority: 1 })).outcome, "created");
});

test("list goes from page to page, up to the limit", async () => {
  const queue = newQueue();
  await tarry.pushMany(Array.from({ length: 250 }, (_, i) => ({ queue, body: i, key: `k${i}`, delay: `${i + 1}m` })));
  const found = await all(tarry.list(queue, { state: "scheduled", body: true }));
  assert.deepEqual(found.map((m) => "body" in m && m.body), Array.from({ length: 250 }, (_, i) => i));
  const last = await all(tarry.list(queue, { state: "scheduled", order: "desc", limit: 120 }));
  assert.deepEqual([last.length, last[0]!.key, last[119]!.key], [120, "k249", "k130"]);
  assert.equal((await all(tarry.list(queue, { key_prefix: "k24" }))).length, 11);
});

test("claim and settle", async () => {
  const queue = newQueue();
  await tarry.push(queue, { n: 1 }, { key: "a" });
  await tarry.push(queue, { n: 2 }, { key: "b", delay: "1h" });
  await fails(tarry.claim(queue, "b"), "not_due");
  const message = await tarry.claim<{ n: number }>(queue, { key: "a" }, { ttr: "1h", worker: "me" });
  assert.equal(message.body.n, 1);
  const leased = await tarry.get(queue, "a");
  assert.ok("worker" in leased && leased.worker === "me");
  await fails(tarry.cancel(queue, "a"), "leased");
  const { results, failed } = await tarry.settle([{ lease: message.lease, do: "ack" }, { lease: message.lease, do: "ack" }]);
  assert.equal(failed, 1);
  assert.ok(TarryError.is(results[1], "lease_lost"));
});

test("any other call", async () => {
  const queue = newQueue();
  await tarry.request("POST", `/v1/queues/${queue}/pause`, { body: {} });
  const { paused } = await tarry.request<{ paused: object | null }>("GET", `/v1/queues/${queue}`);
  assert.ok(paused);
});

test("tokens, in options and in the URL", async () => {
  const file = join(await temporary(), "tokens.json");
  const made = await promisify(execFile)(command, ["token", "create", "shop", "--scope", "push", "--tokens", file]);
  const token = made.stdout.trim();
  const { url } = await serve("--http", "127.0.0.1:0", "--store", "mem:", "--tokens", file);
  const none = await fails(new Client(url).push("q"), "unauthorized");
  assert.notEqual(none.hint, "");
  await new Client(url, { token }).push("q");
  const client = new Client(url.replace("//", `//:${token}@`));
  await client.push("q");
  await fails(client.get("q", { id: "1" }), "forbidden");
});

test("without an answer the code is unavailable", async (t) => {
  const silent = await listen(createSilent(), t);
  const late = await fails(new Client(silent, { timeout: 200 }).push("q"), "unavailable");
  assert.match(late.message, /no answer within 200 ms/);

  const server = await serve("--http", "127.0.0.1:0", "--store", "mem:");
  const client = new Client(server.url);
  const leaving = new AbortController();
  const waiting = client.lease({ queues: ["empty"], wait: "60s" }, { signal: leaving.signal });
  leaving.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  await assert.rejects(client.lease({ queues: ["empty"], wait: "60s" }, { signal: leaving.signal }), /enough/);
  await kill(server);
  const gone = await fails(client.push("q"), "unavailable");
  assert.match(gone.message, /ECONNREFUSED/);
  assert.notEqual(gone.hint, "");
});

test("answers that are not tarry's", async (t) => {
  const server = createServer((request, response) => {
    response.writeHead(request.url === "/teapot/v1/cancel" ? 418 : 502, { "Content-Type": "text/html" }).end("<h1>no</h1>");
  });
  const client = new Client(`${await listen(server, t)}/teapot/`);
  const error = await fails(client.push("q"), "unavailable");
  assert.match(`${error.message} ${error.hint}`, /502.*<h1>no/);
  await fails(client.cancelMany([]), "unavailable");
  for (const body of ["<h1>log in</h1>", "", "null", '"x"', "{}", '{"results":[]}', '{"results":[null]}']) {
    const other = new Client("http://127.0.0.1:1", { fetch: async () => new Response(body) });
    for (const call of [other.pushMany([{ queue: "q" }]), other.settle([{ lease: "l", do: "ack" }]), other.lease({ queues: ["q"] }), all(other.list("q"))]) {
      await fails(call, "unavailable");
    }
  }
});

test("wrong use of a call rejects it", async () => {
  const round: { self?: object } = {};
  round.self = round;
  const nothing = undefined as unknown as string;
  const calls = [
    tarry.push("q", 10n), tarry.push("q", round), tarry.pushMany([{ queue: "q", body: round }]), tarry.push("..", 1), tarry.push("\ud800"),
    tarry.rearm("q", "", { delay: "1h" }), tarry.cancel("q", "\udfff"), tarry.cancel("q", { key: nothing }), tarry.reschedule("q", { id: nothing }, { delay: "1h" }),
    ...["soon", "1.2.3s", 5 as unknown as string].map((wait) => tarry.lease({ queues: ["q"], wait })),
  ];
  await Promise.all(calls.map((call) => fails(call, "invalid")));
  for (const url of ["localhost:8277", "ftp://localhost", ""]) assert.throws(() => new Client(url), /is not the address of a server/);
});

test("a timeout may be infinite", async () => {
  await new Client(tarry.url, { timeout: Infinity }).push(newQueue());
});
