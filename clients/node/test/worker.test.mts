import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { bury, Client, retryIn, settled, snooze, TarryError, type Delivered } from "@tarryhq/client";
import { ended, eventually, Event, expect, late, newQueue, serve, tarry, worker, working } from "./support.mjs";

const counts = async (queue: string, client = tarry) => {
  const { scheduled, ready, leased, dead } = await client.request<Record<string, number>>("GET", `/v1/queues/${queue}`);
  return { scheduled, ready, leased, dead };
};

const none = { scheduled: 0, ready: 0, leased: 0, dead: 0 };

const only = async (queue: string) => {
  for await (const m of tarry.list(queue)) return m;
  return undefined;
};

test("each message is handled once and acked, never more at a time than the concurrency", async () => {
  const [a, b] = [newQueue(), newQueue()];
  const n = 3000;
  const drafts = Array.from({ length: n }, (_, i) => ({ queue: i % 2 ? a : b, body: i, delay: i % 3 ? "0s" : "200ms" }));
  const handled = new Set<number>();
  let [running, most] = [0, 0];
  const all = new Event();
  const handle = async ({ queue, body }: Delivered<number>) => {
    assert.equal(queue, body % 2 ? a : b);
    assert.ok(!handled.has(body), `${body} comes twice`);
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    if (handled.add(body).size === n) all.happen();
  };
  await tarry.pushMany(drafts);
  await working(worker({ concurrency: 37 }).handle(a, handle).handle(b, handle), () => all.happened);
  assert.deepEqual([await counts(a), await counts(b), most], [none, none, 37]);
});

test("what a handler returns or throws decides", async () => {
  const queue = newQueue();
  const attempts: Record<string, number[]> = {};
  const errors: unknown[] = [];
  const later = new Date(Date.now() + 3_600_000);
  const verdicts: Record<string, (m: Delivered) => unknown> = {
    ack: () => false,
    fail: () => Promise.reject(new Error("no such order")),
    odd: () => Promise.reject(new RangeError("half \ud800")),
    unfit: () => Promise.reject(Object.create(null)),
    retryIn: () => retryIn("1h", "closed"),
    snooze: () => snooze(later),
    thrown: () => {
      throw snooze("1h");
    },
    bury: () => bury(new Error("hopeless")),
    settled: async (m) => {
      await tarry.settle([{ lease: m.lease, do: "bury", reason: "by itself" }]);
      return settled();
    },
  };
  await tarry.pushMany(Object.keys(verdicts).map((key) => ({ queue, key, backoff: ["2h"], max_attempts: 2 })));
  await tarry.push(queue, null, { key: "last", max_attempts: 1 });
  verdicts["last"] = () => Promise.reject(new Error("at last"));
  const handle = (m: Delivered) => {
    (attempts[m.key] ??= []).push(m.attempt);
    return verdicts[m.key]!(m);
  };
  const onError = (error: unknown, m?: Delivered) => void (late(error) || errors.push(m?.key ?? error));
  await working(worker({ onError }).handle(queue, handle), async () => {
    await eventually(async () => (await counts(queue)).ready === 0 && (await counts(queue)).leased === 0);
  });
  assert.deepEqual(errors.sort(), ["fail", "last", "odd", "unfit"]);
  assert.deepEqual(Object.values(attempts), Array(10).fill([1]));
  const found: Record<string, unknown[]> = {};
  for await (const m of tarry.list(queue)) {
    const hours = m.state === "scheduled" ? Math.round((Date.parse(m.due!) - Date.now()) / 3_600_000) : 0;
    found[m.key] = [m.state, hours, m.attempt, m.last_error];
  }
  assert.deepEqual(found, {
    fail: ["scheduled", 2, 1, "no such order"],
    odd: ["scheduled", 2, 1, "RangeError: half \ufffd"],
    unfit: ["scheduled", 2, 1, "an error that cannot be shown"],
    retryIn: ["scheduled", 1, 1, "closed"],
    snooze: ["scheduled", 1, 0, ""],
    thrown: ["scheduled", 1, 0, ""],
    bury: ["dead", 0, 1, "hopeless"],
    settled: ["dead", 0, 1, "by itself"],
    last: ["dead", 0, 1, "at last"],
  });
});

test("a lease is renewed while the handler runs", async () => {
  for (const options of [{}, { ttr: "3s" }]) {
    const queue = newQueue();
    await tarry.push(queue, null, { key: "a", ttr: options.ttr ? "1h" : "3s" });
    const done = new Event();
    const handle = async (m: Delivered) => {
      assert.equal(m.attempt, 1);
      const first = Date.parse(m.lease_expires!);
      await eventually(async () => {
        const leased = await tarry.get(queue, "a");
        return "lease_expires" in leased && Date.parse(leased.lease_expires!) > first + 2000;
      });
      assert.ok(!m.signal.aborted);
      done.happen();
    };
    await working(worker(options).handle(queue, handle), () => done.happened);
    assert.deepEqual(await counts(queue), none);
  }
});

test("the signal of a handler ends when its lease is lost, and it is not handled beside itself", async () => {
  const queue = newQueue();
  await tarry.push(queue, null, { key: "a", ttr: "3s" });
  const [lost, again, put, over] = [new Event<Delivered>(), new Event(), new Event(), new Event()];
  const errors: unknown[] = [];
  let running = 0;
  const handle = async (m: Delivered) => {
    assert.equal(++running, 1, "it runs twice at a time");
    if (m.attempt === 1 && !m.last_error) {
      m.signal.addEventListener("abort", () => lost.happen(m));
      await tarry.settle([{ lease: m.lease, do: "retry", delay: "0s", reason: "taken" }]);
      await put.happened;
    } else over.happen();
    running--;
  };
  const onError = (error: unknown) => void (late(error) || errors.push(error));
  await working(worker({ onError }).handle(queue, handle), async () => {
    const m = await lost.happened;
    assert.ok(TarryError.is(m.signal.reason, "lease_lost"));
    // The worker leases it again, and puts it off without counting the attempt.
    await eventually(async () => {
      const found = await tarry.get(queue, "a");
      return found.state === "scheduled" && found.attempt === 1;
    });
    put.happen();
    await over.happened;
    again.happen();
  });
  assert.ok(errors.every((error) => TarryError.is(error, "lease_lost")), String(errors));
  assert.equal(errors.length, 1);
});

test("a handler that takes too long is told, and its lease is left to lapse", async () => {
  const queue = newQueue();
  await tarry.push(queue, null, { ttr: "1s", backoff: ["1h"] });
  const [told, taken] = [new Event<unknown>(), new Event()];
  const handle = async ({ signal }: Delivered) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    told.happen(signal.reason);
    await taken.happened;
  };
  await working(worker({ handlerTimeout: 100, onError: (error) => expect(error, TarryError.is(error, "lease_lost")) }).handle(queue, handle), async () => {
    assert.match(String(await told.happened), /has run for 100 ms/);
    await eventually(async () => (await only(queue))?.last_error === "lease lapsed");
    taken.happen();
  });
});

test("stop leases no more, lets handlers finish and releases what was not started", async () => {
  const queue = newQueue();
  const full = newQueue();
  await tarry.pushMany(Array.from({ length: 5 }, () => ({ queue: full })));
  const once = worker({ concurrency: 5 });
  await ended(once.handle(full, () => once.stop()).run());
  for await (const m of tarry.list(full)) assert.deepEqual([m.state, m.attempt], ["ready", 0]);
  assert.deepEqual(await counts(full), { ...none, ready: 4 });

  const [begun, go] = [new Event(), new Event()];
  let handled = 0;
  const w = worker({ concurrency: 2 }).handle(queue, async () => {
    if (++handled === 2) begun.happen();
    await go.happened;
  });
  await tarry.pushMany(Array.from({ length: 5 }, () => ({ queue })));
  const running = w.run();
  await begun.happened;
  w.stop();
  go.happen();
  await ended(running);
  assert.equal(handled, 2);
  assert.deepEqual(await counts(queue), { ...none, ready: 3 });
});

test("stop ends the wait on the server, and does not hang up on an answer", async () => {
  const [asked, answered] = [new Event(), new Event<Response>()];
  const watched: typeof fetch = async (url, options) => {
    const answer = fetch(url, options);
    if (String(url).endsWith("/v1/lease")) {
      asked.happen();
      answered.happen(await answer);
    }
    return answer;
  };
  const idle = worker({}, new Client(tarry.url, { fetch: watched })).handle(newQueue(), () => assert.fail());
  const running = idle.run();
  await asked.happened;
  idle.stop();
  await ended(running);
  assert.ok((await answered.happened).ok);
});

test("no handler starts once its lease may be over", async () => {
  const queue = newQueue();
  await tarry.pushMany([1, 2].map((n) => ({ queue, key: String(n), ttr: "500ms" })));
  const begun: string[] = [];
  const both = new Event();
  const handle = (m: Delivered) => {
    const end = Date.parse(m.lease_expires!);
    assert.ok(Date.now() < end, `message ${m.key} starts after its lease`);
    while (begun.length === 0 && Date.now() < end + 100); // it leaves the process no time for anything else
    if (begun.push(m.key) > 1) both.happen();
  };
  const onError = (error: unknown) => expect(error, TarryError.is(error, "lease_lost"));
  await working(worker({ onError }).handle(queue, handle), () => both.happened);
});

test("a drain that takes too long interrupts handlers, and their attempts do not count", async () => {
  const queue = newQueue();
  await tarry.push(queue);
  const begun = new Event();
  const w = worker({ drainTimeout: 50 }).handle(queue, async ({ signal }) => {
    begun.happen();
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const running = w.run();
  await begun.happened;
  w.stop();
  await assert.rejects(running, /1 handlers were interrupted/);
  const left = await only(queue);
  assert.deepEqual([left?.state, left?.attempt], ["ready", 0]);
});

test("a message that may have killed its process begins once earlier results are confirmed", async () => {
  const [queue, other] = [newQueue(), newQueue()];
  await tarry.push(queue, null, { key: "a", ttr: "1ms", max_attempts: 9 });
  for (let attempt = 1; attempt <= 2; attempt++) {
    await eventually(async () => (await tarry.lease({ queues: [queue], wait: "1s" })).messages.length > 0);
    await eventually(async () => (await only(queue))?.last_error === "lease lapsed");
  }
  const done = new Event();
  await tarry.push(other, null, { key: "b", remember: "1h" });
  const slow: typeof fetch = async (url, options) => {
    if (String(url).endsWith("/v1/settle")) await sleep(500);
    return fetch(url, options);
  };
  const w = worker({ ttr: "10s", concurrency: 1 }, new Client(tarry.url, { fetch: slow })).handle(other, async () => {
    await eventually(async () => (await only(queue))?.state === "ready");
  });
  w.handle(queue, async () => {
    assert.equal((await tarry.get(other, "b")).state, "finished");
    done.happen();
  });
  await working(w, () => done.happened);
});

test("wrong use and wrong requests end run", async () => {
  await assert.rejects(worker().run(), /needs a handler/);
  await assert.rejects(worker({ concurrency: 0 }).handle("q", () => {}).run(), /concurrency/);
  const w = worker().handle("no such queue!", () => {});
  assert.throws(() => w.handle("no such queue!", () => {}), /twice/);
  await assert.rejects(w.run(), (error) => TarryError.is(error, "invalid"));
  await assert.rejects(w.run(), /runs once/);
});

test("an onError that throws stops nothing", async (t) => {
  const queue = newQueue();
  t.mock.method(console, "error", () => {});
  await tarry.push(queue, null, { backoff: ["0s"] });
  const done = new Event();
  const throws = () => {
    throw new Error("of the user");
  };
  const handle = (m: Delivered) => {
    if (m.attempt <= 2) throw new Error("twice");
    done.happen();
  };
  let calls = 0;
  const onError = () => (++calls === 1 ? throws() : Promise.reject(new Error("later")));
  await working(worker({ onError }).handle(queue, handle), () => done.happened);
  assert.equal(calls, 2);
});

test("an outcome that the server refuses takes no others with it", async () => {
  const queue = newQueue();
  await tarry.pushMany(Array.from({ length: 60 }, (_, body) => ({ queue, body, key: `${body}`, backoff: ["1h"] })));
  const [all, refused] = [new Event(), [] as unknown[]];
  let begun = 0;
  const handle = async ({ body }: Delivered) => {
    if (++begun === 60) all.happen();
    await all.happened;
    if (body === 7) return snooze(5 as unknown as string);
    if (body === 8) return retryIn("1h", "x".repeat(9 << 20));
    if (Number(body) % 2) throw new Error("x".repeat(1 << 18)); // together more than a request may have
    return undefined;
  };
  const onError = (error: unknown) => void (TarryError.is(error, "invalid") && refused.push(error));
  await working(worker({ onError }).handle(queue, handle), async () => {
    await eventually(async () => (await counts(queue)).leased === 1);
  });
  assert.deepEqual([await counts(queue), refused.length], [{ ...none, scheduled: 30, leased: 1 }, 1]);
  assert.equal((await tarry.get(queue, "7")).state, "leased");
});

test("what another copy of the package decides counts too", async () => {
  const require = createRequire(import.meta.url);
  for (const name of Object.keys(require.cache)) if (name.startsWith(dirname(require.resolve("@tarryhq/client")))) delete require.cache[name];
  const copy = require("@tarryhq/client") as typeof import("@tarryhq/client");
  assert.notEqual(copy.bury, bury);
  const queue = newQueue();
  await tarry.pushMany([{ queue, key: "returned" }, { queue, key: "thrown" }]);
  const handle = ({ key }: Delivered) => (key === "thrown" ? Promise.reject(copy.bury("no")) : copy.bury("no"));
  await working(worker().handle(queue, handle), async () => {
    await eventually(async () => (await counts(queue)).dead === 2);
  });
});

test("times without end", async () => {
  const queue = newQueue();
  await tarry.push(queue);
  const begun = new Event<AbortSignal>();
  const w = worker({ handlerTimeout: Infinity, drainTimeout: Infinity }).handle(queue, async ({ signal }) => {
    begun.happen(signal);
    await sleep(200);
  });
  const running = w.run();
  const signal = await begun.happened;
  w.stop();
  await ended(running);
  assert.deepEqual([signal.aborted, await counts(queue)], [false, none]);
});

test("answers of something before the server end no worker", async () => {
  const queue = newQueue();
  await tarry.push(queue);
  const asked: Record<string, number> = {};
  const gateway: typeof fetch = async (url, options) => {
    const times = (asked[new URL(String(url)).pathname] = (asked[new URL(String(url)).pathname] ?? 0) + 1);
    return times <= 2 ? new Response("<h1>not yet", { status: 404 }) : fetch(url, options);
  };
  const onError = (error: unknown) => expect(error, TarryError.is(error, "unavailable"));
  await working(worker({ onError }, new Client(tarry.url, { fetch: gateway })).handle(queue, () => {}), async () => {
    await eventually(async () => (asked["/v1/settle"] ?? 0) >= 3);
  });
  assert.deepEqual(await counts(queue), none);
});

test("stop waits no longer than the drain may last, though results could not be sent before a suspect", async () => {
  const [queue, other] = [newQueue(), newQueue()];
  await tarry.push(queue, null, { ttr: "1ms", max_attempts: 9 });
  for (let attempt = 1; attempt <= 2; attempt++) {
    await eventually(async () => (await tarry.lease({ queues: [queue], wait: "1s" })).messages.length > 0);
    await eventually(async () => (await only(queue))?.state !== "leased");
  }
  await tarry.request("POST", `/v1/queues/${queue}/pause`, { body: {} });
  await tarry.push(other);
  const mute: typeof fetch = (url, options) => (String(url).endsWith("/v1/settle") ? Promise.reject(new Error("no route")) : fetch(url, options));
  const onError = (error: unknown) => expect(error, TarryError.is(error, "unavailable"));
  const w = worker({ ttr: "1h", concurrency: 1, onError }, new Client(tarry.url, { fetch: mute })).handle(other, async () => {
    await tarry.request("POST", `/v1/queues/${queue}/resume`, { body: {} });
  });
  const running = w.handle(queue, () => assert.fail("it began")).run();
  await eventually(async () => (await only(queue))?.state === "leased");
  w.stop();
  await assert.rejects(running, /2 results could not be sent/);
});

test("results that could not be sent are reported", async () => {
  const server = await serve("--http", "127.0.0.1:0", "--store", "mem:");
  const client = new Client(server.url);
  await client.push("q");
  const w = worker({ onError: () => {} }, client).handle("q", () => {
    server.process.kill("SIGKILL");
    w.stop();
  });
  await assert.rejects(w.run(), /1 results could not be sent/);
});
