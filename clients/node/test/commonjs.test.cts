import assert from "node:assert/strict";
import test from "node:test";
import tarry = require("@tarryhq/client");

test("require and import give the same classes", async () => {
  const imported = await import("@tarryhq/client");
  assert.equal(imported.TarryError, tarry.TarryError);
  assert.deepEqual(Object.keys(tarry).sort(), ["Client", "TarryError", "Verdict", "Worker", "bury", "retryIn", "settled", "snooze"]);
  for (const name of Object.keys(tarry)) assert.ok(name in imported, name);
});
