// Runs a peer that is a library for Node. Commands come as lines of JSON on standard input,
// and each is answered by a line on standard output:
//
//   {"id":1,"do":"load","kind":"push","queue":"bench","clients":64,"batch":1,"from":0,"to":1000,"first":MS,"step":MS,"spread":MS,"seconds":4}
//   {"id":1,"n":1000,"seconds":0.5}
//
// While it works, there are also lines with the numbers of messages and when each was started:
//
//   {"started":[[0,1790000000000.25]]}
import { createInterface } from 'node:readline';
import * as peers from './peers.mjs';

const [name, url] = process.argv.slice(2);
const tell = (line) => process.stdout.write(JSON.stringify(line) + '\n');

// Those that started in one turn of the event loop are told together.
let begun = [];
function started(i) {
  if (begun.push([i, performance.timeOrigin + performance.now()]) === 1) {
    setImmediate(() => {
      tell({ started: begun });
      begun = [];
    });
  }
}

const body = Array.from({ length: 200 }, () => '0123456789abcdef'[Math.floor(Math.random() * 16)]).join('');

// load makes calls of concurrent clients, as fast as they can, until all are made or time is up.
async function load(peer, job) {
  const due = (i) => new Date(job.first + Math.round((i - job.from) * job.step) + Math.floor(Math.random() * job.spread));
  const began = performance.now();
  const end = job.seconds > 0 ? began + job.seconds * 1000 : Infinity;
  let next = job.from;
  let n = 0;
  async function client() {
    while (next < job.to && performance.now() < end) {
      const from = next;
      const to = Math.min(from + job.batch, job.to);
      next = to;
      if (job.kind === 'cancel') {
        await peer.cancel(job.queue, `order-${from}`);
      } else {
        const messages = [];
        for (let i = from; i < to; i++) {
          messages.push({ i, key: `order-${i}`, body, due: due(i) });
        }
        await (job.batch === 1 ? peer.push(job.queue, messages[0]) : peer.pushMany(job.queue, messages));
      }
      n += to - from;
    }
  }
  await Promise.all(Array.from({ length: job.clients }, client));
  return { n, seconds: (performance.now() - began) / 1000 };
}

const peer = await peers[name](url, started);
tell({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  (async () => {
    switch (command.do) {
      case 'load':
        return load(peer, command);
      case 'work':
        await peer.work(command.queue);
        return {};
      case 'stop':
        await peer.stop();
        return {};
      case 'count':
        return { n: await peer.count(command.queue) };
    }
    throw new Error(`what is ${command.do}?`);
  })().then(
    (answer) => tell({ id: command.id, ...answer }),
    (error) => tell({ id: command.id, error: String(error) }),
  );
}
process.exit();
