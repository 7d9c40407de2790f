import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, TarryError, Worker, type WorkerOptions } from "@tarryhq/client";

function needed(name: string, what: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} has to name ${what}; go test ./clients sets it`);
  return value;
}

/** The path of the command tarry. */
export const command = needed("TARRY_COMMAND", "the command tarry");

/** A client of a server that runs meanwhile. */
export const tarry = new Client(needed("TARRY_SERVER", "a server"));

/** How long to wait for what has to happen, in ms; a busy machine is slow. */
export const patience = 60_000;

let queues = 0;

/** Returns a queue of the test's own. */
export const newQueue = () => `test.${process.pid}.${++queues}`;

export async function temporary(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "tarry-node-"));
  after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

export interface Server {
  url: string;
  process: ChildProcess;
}

/** Starts a server with these flags, and ends it after the tests if it still runs. */
export async function serve(...flags: string[]): Promise<Server> {
  const child = spawn(command, ["serve", ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  after(() => child.kill("SIGKILL"));
  for await (const line of createInterface(child.stdout!)) {
    const [, url] = / listens on (\S+)/.exec(line) ?? [];
    if (url) return { url, process: child };
  }
  throw new Error(`the server ended with ${child.exitCode}`);
}

export async function kill(server: Server): Promise<void> {
  server.process.kill("SIGKILL");
  await once(server.process, "exit");
}

/** Asks again and again until the answer is neither undefined nor false. */
export async function eventually<T>(ask: () => Promise<T | undefined | false>): Promise<T> {
  for (const end = Date.now() + patience; Date.now() < end; await sleep(20)) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
  }
  throw new Error(`it has not happened within ${patience} ms: ${ask}`);
}

/** Something that is awaited and happens once. */
export class Event<T = void> {
  happen!: (value: T) => void;
  readonly happened = new Promise<T>((resolve) => (this.happen = resolve));
}

const unexpected: unknown[] = [];

/** Returns a worker that no signal stops. Errors that its onError does not get make the test fail, once it has ended. */
export const worker = (options: WorkerOptions = {}, client = tarry) =>
  new Worker(client, { signals: [], onError: (error) => expect(error, false), ...options });

/** Notes an error unless it is as expected. On a busy machine any answer may be late. */
export const expect = (error: unknown, expected: boolean) => void (expected || late(error) || unexpected.push(error));

export const late = (error: unknown) => TarryError.is(error, "unavailable");

/** Waits until a worker has ended, and expects no other errors than those that its test knows of. */
export async function ended(running: Promise<void>): Promise<void> {
  await running;
  const [first] = unexpected.splice(0);
  if (first) throw first;
}

/** Runs a worker until f returns, and then expects that it drains well. */
export async function working(worker: Worker, f: () => Promise<void>): Promise<void> {
  const running = worker.run();
  const early = running.then(() => Promise.reject(new Error("the worker has ended")));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => (timer = setTimeout(reject, 2 * patience, new Error("it takes too long"))));
  try {
    await Promise.race([f(), early, late]);
  } finally {
    clearTimeout(timer);
    early.catch(() => {});
    worker.stop();
  }
  await ended(running);
}
