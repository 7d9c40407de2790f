// Measures how many messages a second one worker handles and acks: npm run rate (TARRY_SERVER; N=100000).
import { Client, Worker, type Draft } from "@tarryhq/client";

const n = Number(process.env["N"] ?? 100_000);
const queue = `rate.${process.pid}`;
const client = new Client();
for (let i = 0; i < n; i += 5000) {
  const drafts: Draft[] = Array.from({ length: Math.min(5000, n - i) }, (_, k) => ({ queue, body: { order: i + k } }));
  await client.pushMany(drafts);
}
const worker = new Worker(client);
let handled = 0;
worker.handle(queue, async () => {
  if (++handled === n) worker.stop();
});
const before = performance.now();
await worker.run();
const seconds = (performance.now() - before) / 1000;
const { user, system } = process.cpuUsage();
console.log(`${Math.round(n / seconds)} messages a second; ${Math.round((user + system) / n)} µs of processor each, pushes included`);
