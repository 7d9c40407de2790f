import { Queue, Worker } from 'bullmq';
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';

const concurrency = 64;

// BullMQ, with its jobs removed when they are done.
export async function bullmq(url, started) {
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const queues = new Map();
  const open = (name) => {
    if (!queues.has(name)) {
      const queue = new Queue(name, { connection });
      queue.on('error', () => {}); // it connects anew
      queues.set(name, queue);
    }
    return queues.get(name);
  };
  await open('bench').waitUntilReady();
  let worker;
  const job = (m) => ({
    name: 'bench',
    data: { i: m.i, body: m.body },
    opts: { jobId: m.key, delay: Math.max(0, m.due - Date.now()), removeOnComplete: true },
  });
  const removed = (n, key) => {
    if (n !== 1) throw new Error(`${key} is not there`);
  };
  return {
    push: (queue, m) => {
      const { name, data, opts } = job(m);
      return open(queue).add(name, data, opts);
    },
    pushMany: (queue, messages) => open(queue).addBulk(messages.map(job)),
    cancel: async (queue, key) => removed(await open(queue).remove(key), key),
    work: async (queue) => {
      worker = new Worker(queue, async ({ data }) => started(data.i), { connection, concurrency });
      worker.on('error', () => {});
      await worker.waitUntilReady();
    },
    stop: () => worker.close(),
    count: async (queue) => Object.values(await open(queue).getJobCounts('delayed', 'wait', 'active', 'prioritized', 'paused', 'failed')).reduce((a, b) => a + b, 0),
  };
}

// graphile-worker as it comes: it looks for what is due every two seconds.
export async function graphile(url, started) {
  const pgPool = new pg.Pool({ connectionString: url, max: concurrency + 16 });
  pgPool.on('error', () => {}); // it connects anew
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ pgPool, logger });
  await utils.migrate();
  let runner;
  return {
    push: (queue, m) => utils.addJob(queue, { i: m.i, body: m.body }, { runAt: m.due, jobKey: m.key }),
    pushMany: (queue, messages) =>
      utils.addJobs(messages.map((m) => ({ identifier: queue, payload: { i: m.i, body: m.body }, runAt: m.due, jobKey: m.key }))),
    cancel: async (_queue, key) => {
      const { rowCount } = await pgPool.query('SELECT FROM graphile_worker.remove_job($1)', [key]);
      if (rowCount !== 1) throw new Error(`${key} is not there`);
    },
    work: async (queue) => {
      runner = await run({ pgPool, logger, concurrency, noHandleSignals: true, taskList: { [queue]: async ({ i }) => started(i) } });
    },
    stop: () => runner.stop(),
    count: async (queue) => {
      const { rows } = await pgPool.query(
        'SELECT count(*) FROM graphile_worker._private_jobs j JOIN graphile_worker._private_tasks t ON t.id = j.task_id WHERE t.identifier = $1',
        [queue],
      );
      return Number(rows[0].count);
    },
  };
}
