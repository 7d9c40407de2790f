import assert from "node:assert/strict";
import { createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, TarryError, type api, type Draft } from "@tarryhq/client";
import { eventually, Event, expect, kill, late, patience, serve, temporary, worker, working } from "./support.mjs";

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Returns how many messages the queue has. */
async function left(client: Client): Promise<number> {
  const { scheduled, ready, leased, dead } = await client.request<api.Queue>("GET", "/v1/queues/load");
  return scheduled + ready + leased + dead;
}

test("kill -9 of the server loses nothing that was answered, and the worker goes on", { timeout: 3 * patience }, async () => {
  const flags = ["--store", `disk:${await temporary()}`, "--http", `127.0.0.1:${await freePort()}`];
  let server = await serve(...flags);
  const client = new Client(server.url);
  const handled = new Map<string, number>();
  const answered = new Set<string>();
  let [pushing, outages] = [true, 0];

  /** Pushes batches, each again until it is answered. */
  async function push(name: string): Promise<void> {
    for (let n = 0; pushing; n++) {
      const batch: Draft[] = Array.from({ length: 50 }, (_, i) => ({
        queue: "load", key: `${name}.${n}.${i}`, body: i, on_conflict: "keep", remember: "1h", delay: i % 2 ? "0s" : "100ms",
      }));
      while (!(await tryToPush(batch))) await sleep(20);
    }
  }
  async function tryToPush(batch: Draft[]): Promise<boolean> {
    try {
      const { results, failed } = await client.pushMany(batch);
      assert.equal(failed, 0, String(results.find((r) => r instanceof TarryError)));
      for (const { key } of batch) answered.add(key!);
      return true;
    } catch (error) {
      assert.ok(TarryError.is(error, "unavailable"), String(error));
      return false;
    }
  }

  const onError = (error: unknown) => {
    expect(error, TarryError.is(error, "lease_lost"));
    outages += late(error) ? 1 : 0;
  };
  const w = worker({ ttr: "2s", concurrency: 200, onError }, client).handle("load", async ({ key }) => {
    await sleep(1);
    handled.set(key, (handled.get(key) ?? 0) + 1);
  });
  const rounds = async () => {
    for (let round = 0; round < 3; round++) {
      const enough = handled.size + 500;
      await eventually(async () => handled.size >= enough);
      await kill(server);
      server = await serve(...flags);
    }
    const enough = handled.size + 500;
    await eventually(async () => handled.size >= enough);
  };
  await working(w, async () => {
    const pushers = [push("a"), push("b"), push("c")];
    await rounds().finally(() => (pushing = false));
    await Promise.all(pushers);
    await eventually(async () => [...answered].every((key) => handled.has(key)) && (await left(client)) === 0);
  });
  assert.ok(outages > 0, "no kill was noticed: that shows nothing");
  const twice = [...handled.values()].filter((n) => n > 1).length;
  console.log(`${answered.size} messages, ${twice} handled again after a kill`);
  // Only what was in hand at a kill may come again.
  assert.ok(twice <= 3 * 200, `${twice} were handled again`);
});

test("a result is sent again after the server was away", async () => {
  const flags = ["--store", `disk:${await temporary()}`, "--http", `127.0.0.1:${await freePort()}`];
  let server = await serve(...flags);
  const client = new Client(server.url);
  await client.push("load", null, { ttr: "10m" });
  const away = new Event();
  const onError = (error: unknown) => {
    expect(error, false);
    if (late(error)) away.happen();
  };
  let handled = 0;
  const killed = new Event();
  const handle = async () => {
    handled++;
    await kill(server);
    killed.happen();
  };
  await working(worker({ onError }, client).handle("load", handle), async () => {
    await Promise.all([away.happened, killed.happened]);
    server = await serve(...flags);
    await eventually(async () => (await left(client)) === 0);
  });
  assert.equal(handled, 1);
});
