// Builds the pages into a folder: node build.js ../dist. The same sources and packages
// give the same bytes.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2];
if (!out) {
  console.error("say where to: node build.js DIR");
  process.exit(2);
}
mkdirSync(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2022", "chrome109", "firefox115", "safari16"],
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) copyFileSync(join(here, "src", name), join(out, name));

// What others wrote is part of app.js: their licences go with it.
const packages = ["@preact/signals", "@preact/signals-core", "preact", "uplot"];
const texts = packages.map((name) => {
  const dir = join(here, "node_modules", name);
  const { version } = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
  return `${name} ${version}\n\n${readFileSync(join(dir, "LICENSE"), "utf8").trim()}\n`;
});
writeFileSync(join(out, "licenses.txt"), "app.js holds parts of these packages.\n\n" + texts.join("\n\n"));
