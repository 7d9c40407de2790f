// Each client puts, delays, reserves, touches, releases, buries, kicks and pauses, and looks at what that does.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const host = "127.0.0.1";
const port = Number(process.argv[2]);

const parsed = (stats) => typeof stats === "string" || Buffer.isBuffer(stats)
  ? Object.fromEntries(String(stats).split("\n").map((line) => line.split(": ").map((s) => s.replaceAll('"', ""))))
  : stats;

// Each client connects, and its calls are made like those of the others.
const clients = {
  async jackd() {
    const Jackd = require("jackd");
    const c = await new Jackd().connect({ host, port });
    const job = (j) => ({ id: j.id, body: String(j.payload) });
    return Object.assign(calls(c, job), {
      put: (body, priority, delay, ttr) => c.put(body, { priority, delay, ttr }),
      release: (id, priority, delay) => c.release(id, { priority, delay }),
      pause: (tube, delay) => c.pauseTube(tube, { delay: `${delay}\r\n` }), // it forgets the end of the line
      quit: () => c.quit(),
    });
  },
  async "node-beanstalk"() {
    const { Client } = require("node-beanstalk");
    const c = new Client({ host, port });
    await c.connect();
    const job = (j) => ({ id: j.id, body: String(j.payload) });
    return Object.assign(calls(c, job), {
      put: async (body, priority, delay, ttr) => (await c.put(body, ttr, priority, delay)).id,
      nothing: async () => assert.equal(await c.reserveWithTimeout(0), null),
      quit: () => c.disconnect(),
    });
  },
  async beanstalkd() {
    const Beanstalkd = require("beanstalkd").default;
    const c = new Beanstalkd(host, port);
    await c.connect();
    const job = ([id, body]) => ({ id, body: String(body) });
    return Object.assign(calls(c, job), {
      put: (body, priority, delay, ttr) => c.put(priority, delay, ttr, body),
      kick: async (id) => { await c.kickJob(id); return 1; }, // it has no kick
      quit: () => c.quit(),
    });
  },
};

const calls = (c, job) => ({
  use: (tube) => c.use(tube), watch: (tube) => c.watch(tube), ignore: (tube) => c.ignore(tube),
  reserve: async () => job(await c.reserve()),
  nothing: () => assert.rejects(Promise.resolve(c.reserveWithTimeout(0)), /TIMED_OUT/),
  release: (id, priority, delay) => c.release(id, priority, delay),
  bury: (id, priority) => c.bury(id, priority),
  touch: (id) => c.touch(id), delete: (id) => c.delete(id), kick: () => c.kick(10),
  pause: (tube, delay) => c.pauseTube(tube, delay),
  peekDelayed: async () => job(await c.peekDelayed()), peekBuried: async () => job(await c.peekBuried()),
  statsJob: (id) => c.statsJob(id), statsTube: (tube) => c.statsTube(tube), stats: () => c.stats(),
});

async function drive(name) {
  const c = await clients[name]();
  const has = (stats, want) => {
    const got = parsed(stats);
    for (const [k, v] of Object.entries(want)) assert.equal(String(got[k] ?? got[k.replace(/-(.)/g, (_, l) => l.toUpperCase())]), String(v), `${name}: ${k}`);
  };
  await c.use(name);
  await c.watch(name);
  await c.ignore("default");
  const body = "a job, é";
  const id = await c.put(body, 9, 0, 60);
  assert.deepEqual(await c.reserve(), { id, body });
  await c.touch(id);
  await c.release(id, 5, 0);
  has(await c.statsJob(id), { state: "ready", pri: 5, reserves: 1, releases: 1 });
  assert.deepEqual(await c.reserve(), { id, body });
  await c.bury(id, 7);
  assert.equal((await c.peekBuried()).id, id);
  assert.equal(await c.kick(id), 1);
  has(await c.statsJob(id), { state: "ready", pri: 7, buries: 1, kicks: 1 });
  const later = await c.put("later", 1, 60, 60);
  assert.equal((await c.peekDelayed()).id, later);
  has(await c.statsTube(name), { "current-jobs-ready": 1, "current-jobs-delayed": 1, "total-jobs": 2 });
  assert.equal(await c.kick(later), 1);
  const paused = Date.now();
  await c.pause(name, 1);
  assert.deepEqual(await c.reserve(), { id: later, body: "later" });
  assert.ok(Date.now() - paused > 990);
  await c.delete(later);
  assert.deepEqual(await c.reserve(), { id, body });
  await c.delete(id);
  await c.nothing();
  has(await c.stats(), { "current-jobs-ready": 0, "current-jobs-reserved": 0 });
  await c.quit();
  console.log(`${name} has done all`);
}

for (const name of Object.keys(clients)) await drive(name);
