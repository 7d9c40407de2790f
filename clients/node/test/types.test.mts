import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { promisify } from "node:util";
import { tarry } from "./support.mjs";

test("src/types.ts is what the server's openapi.json gives", async () => {
  const root = new URL("..", import.meta.url);
  const made = await promisify(execFile)(process.execPath, ["scripts/types.mjs", `${tarry.url}/openapi.json`], { cwd: root, maxBuffer: 2 ** 24 });
  assert.equal(made.stdout, await readFile(new URL("src/types.ts", root), "utf8"), "make client makes it anew");
});
