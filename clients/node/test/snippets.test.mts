import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { eventually, tarry } from "./support.mjs";

const root = new URL("..", import.meta.url);
const dir = new URL("build/snippets/", root);

/** What the snippets take as given. */
const prelude = `
async function cancelOrder(id: string) { console.log("cancelled", id); }
async function send(mail: unknown) { console.log("sent", JSON.stringify(mail)); }
async function isClosed(order: string) { return order === "closed"; }
async function isOpen(order: string) { return order === "open"; }
async function rate(order: string, stars: number, how: { signal: AbortSignal }) { console.log("rated", order, stars, how.signal.aborted); }
`;
const imports = `import { bury, Client, retryIn, snooze, TarryError, Worker } from "@tarryhq/client";
const tarry = new Client("${tarry.url}");`;

async function snippets(page: string, language: string): Promise<string[]> {
  const text = await readFile(new URL(page, root), "utf8");
  const found = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, "gm"))].map(([, code]) => code!);
  return found.map((code) => (code.includes("import ") ? code : imports + code).replace("http://127.0.0.1:8277", tarry.url));
}

/** Compiles snippets, by name. What they take as given is added. */
async function compile(codes: Record<string, string>): Promise<void> {
  await mkdir(dir, { recursive: true });
  const files = Object.entries(codes).map(([name, code]) => ({ path: fileURLToPath(new URL(`${name}.mts`, dir)), code }));
  for (const { path, code } of files) await writeFile(path, code + prelude);
  const options = ["--module", "node16", "--target", "es2022", "--strict", "--skipLibCheck", "--types", "node"];
  const tsc = fileURLToPath(new URL("node_modules/typescript/bin/tsc", root));
  const compiled = promisify(execFile)(process.execPath, [tsc, ...options, ...files.map(({ path }) => path)], { cwd: root });
  await compiled.catch((error: { stdout: string }) => assert.fail(error.stdout));
}

function start(name: string) {
  const child = spawn(process.execPath, [fileURLToPath(new URL(`${name}.mjs`, dir))], { stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  createInterface(child.stdout!).on("line", (line) => lines.push(line));
  return { child, lines, exit: once(child, "close") };
}

/** Runs the six lines: what is pushed afterwards is handled, and SIGTERM ends the worker well. */
async function sixLines(name: string): Promise<void> {
  const { child, lines, exit } = start(name);
  await tarry.push("order.unpaid", { id: name });
  await eventually(async () => lines.includes(`cancelled ${name}`));
  child.kill("SIGTERM");
  assert.deepEqual(await exit, [0, null]);
  assert.deepEqual(lines, [`cancelled ${name}`], "order 42 is paid, and must not be cancelled");
  for await (const m of tarry.list("order.unpaid")) assert.fail(`${m.key} is left`);
}

test("the snippets of the README", async () => {
  const [six, calls, errors, worker, ...more] = await snippets("README.md", "ts");
  assert.ok(six && calls && errors && worker && more.length === 0);
  const [project, ...others] = await snippets("../../README.md", "js");
  assert.ok(project && others.length === 0);
  await compile({
    six,
    project: project.replace("(m)", "(m: any)"),
    calls: `${calls}\nconsole.log(state);`,
    errors,
    worker: `${worker.replace("attempt === 1", '$& && body.order !== "old"')}\nawait worker.run();`,
  });
  await sixLines("six");
  await sixLines("project");

  const called = start("calls");
  assert.deepEqual(await called.exit, [0, null]);
  assert.deepEqual([called.lines.length, called.lines.at(-1)], [3, "scheduled"]);

  const failed = start("errors");
  assert.deepEqual(await failed.exit, [0, null]);
  assert.match(failed.lines.join(), /key is taken .* ready /);

  const orders = ["closed", "open", "new"].map((order) => ({ queue: "review", key: order, body: { order } }));
  await tarry.pushMany([...orders, { queue: "review", key: "old", body: { order: "old" } }]);
  const worked = start("worker");
  await eventually(async () => worked.lines.includes("rated old 5 false"));
  worked.child.kill("SIGTERM");
  assert.deepEqual(await worked.exit, [0, null]);
  const states: Record<string, unknown[]> = {};
  for await (const m of tarry.list("review")) states[m.key] = [m.state, m.attempt, m.last_error];
  assert.deepEqual(states, { closed: ["dead", 1, "closed"], open: ["scheduled", 0, ""], new: ["scheduled", 1, "not yet"] });
});

test("the snippet for who comes from BullMQ", async (t) => {
  const [after, ...others] = await snippets("../../docs/from/bullmq.md", "js");
  assert.ok(after && others.length === 0);
  await compile({ bullmq: after.replaceAll('"mail"', '"bullmq"') }); // another test pauses mail
  const { child, lines, exit } = start("bullmq");
  t.after(() => child.kill("SIGKILL"));
  await tarry.push("bullmq", { to: "bob" });
  await eventually(async () => lines.includes('sent {"to":"bob"}'));
  child.kill("SIGTERM");
  assert.deepEqual(await exit, [0, null]);
  for await (const m of tarry.list("bullmq")) assert.fail(`${m.key} is left`);
});
