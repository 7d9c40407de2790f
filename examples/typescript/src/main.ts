// Orders that are not paid in time are cancelled: the main job of tarry, by a client
// whose types are generated from the server's own /openapi.json.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/tarry.js";

type LeasedMessage = components["schemas"]["LeasedMessage"];

const server = process.env.TARRY_SERVER ?? "http://127.0.0.1:8277";
const token = process.env.TARRY_TOKEN;
const tarry = createClient<paths>({
  baseUrl: server,
  ...(token ? { headers: { Authorization: `Bearer ${token}` } } : {}),
});
const queue = `order.unpaid.${process.pid}`;

// done returns what a call answered, or throws its error.
function done<T>(answer: { data?: T; error?: components["schemas"]["Failure"] }): T {
  if (answer.error) {
    const { code, message, hint } = answer.error.error;
    throw new Error(`${code}: ${message} ${hint}`);
  }
  return answer.data as T;
}

async function unpaid(key: string, delay: string) {
  return done(
    await tarry.POST("/v1/queues/{queue}/messages", {
      params: { path: { queue } },
      body: { key, delay, body: { order: key }, headers: { shop: "1" } },
    }),
  );
}

// handle leases what is due, hands it to f, and settles it.
async function handle(f: (m: LeasedMessage) => void): Promise<number> {
  const leased = done(await tarry.POST("/v1/lease", { body: { queues: [queue], max: 10, wait: "20s", ttr: "60s" } }));
  leased.messages.forEach(f);
  const settled = done(
    await tarry.POST("/v1/settle", { body: { settlements: leased.messages.map((m) => ({ lease: m.lease, do: "ack" as const })) } }),
  );
  assert.equal(settled.failed, 0);
  return leased.messages.length;
}

// Two orders are to be cancelled later.
const pushed = await unpaid("41", "1ms");
assert.equal(pushed.outcome, "created");
await unpaid("a/42", "30m");

// A key is a name of your own: nothing is pushed twice.
const again = await tarry.POST("/v1/queues/{queue}/messages", { params: { path: { queue } }, body: { key: "a/42", delay: "30m" } });
assert.equal(again.response.status, 409);
assert.equal(again.error?.error.code, "exists");

// Look the second up.
const path = { queue, key: "a/42" };
const found = done(await tarry.GET("/v1/queues/{queue}/keys/{key}", { params: { path } }));
assert.equal(found.state, "scheduled");
assert.ok("body" in found);
assert.deepEqual(found.body, { order: "a/42" });

// It is paid: its message is cancelled, and never handled.
done(await tarry.DELETE("/v1/queues/{queue}/keys/{key}", { params: { path } }));

// The first is not: it is leased when it is due, and settled.
const handled: unknown[] = [];
assert.equal(await handle((m) => handled.push(m.body)), 1);
assert.deepEqual(handled, [{ order: "41" }]);

const left = done(await tarry.GET("/v1/queues/{queue}", { params: { path: { queue } } }));
assert.equal(left.scheduled + left.ready + left.leased, 0);
console.log("order 41 was cancelled, order a/42 was paid");
