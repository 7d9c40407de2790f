// A worker that cancels a shop's unpaid orders, beside those in other languages. See main.go.
import { Client, Worker } from "@tarryhq/client";

const worker = new Worker(new Client(), { concurrency: 5 });
worker.handle("order.unpaid", (m) => console.log(`Node cancels order ${m.body.id}`));
await worker.run();
