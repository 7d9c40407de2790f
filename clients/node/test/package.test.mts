import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { temporary } from "./support.mjs";

const run = promisify(execFile);
const root = fileURLToPath(new URL("..", import.meta.url));

test("what npm packs is whole, and works by import and by require", async () => {
  const dir = await temporary();
  const modules = join(dir, "node_modules", "@tarryhq", "client");
  await mkdir(modules, { recursive: true });
  const { stdout } = await run("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", dir], { cwd: root });
  await run("tar", ["-xf", join(dir, stdout.trim()), "-C", modules, "--strip-components", "1"]);
  assert.deepEqual((await readdir(modules)).sort(), ["README.md", "dist", "package.json"]);
  assert.deepEqual(Object.keys(JSON.parse(await readFile(join(modules, "package.json"), "utf8")).dependencies ?? {}), []);

  const use = "const w: Worker = new Worker(new Client()); const code: ErrorCode = 'exists'; const q: api.Queue | undefined = undefined; console.log(typeof w.run, code, q);";
  await writeFile(join(dir, "a.mts"), `import { Client, Worker, type api, type ErrorCode } from "@tarryhq/client"; ${use}`);
  await writeFile(join(dir, "b.cts"), `import { Client, Worker, type api, type ErrorCode } from "@tarryhq/client"; ${use}`);
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")];
  await run(process.execPath, [tsc, "--module", "node16", "--target", "es2022", "--strict", "--skipLibCheck", ...types, "a.mts", "b.cts"], { cwd: dir }).catch(
    (error: { stdout: string }) => assert.fail(error.stdout),
  );
  for (const name of ["a.mjs", "b.cjs"]) assert.equal((await run(process.execPath, [name], { cwd: dir })).stdout, "function exists undefined\n");
});

test("the client stays small", async () => {
  let lines = 0;
  for (const dir of ["src", "scripts"]) {
    for (const name of await readdir(join(root, dir))) {
      if (name !== "types.ts") lines += (await readFile(join(root, dir, name), "utf8")).split("\n").length - 1;
    }
  }
  assert.ok(lines <= 900, `${lines} lines by hand`);
});
