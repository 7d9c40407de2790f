// Makes TypeScript of the schemas in a server's OpenAPI document, and of the query parameters of its calls.
//
//	node scripts/types.mjs URL|FILE [OUT]
import { readFile, writeFile } from "node:fs/promises";

const [from, out] = process.argv.slice(2);
const text = /^https?:/.test(from) ? await (await fetch(from)).text() : await readFile(from, "utf8");
const document = JSON.parse(text);

const plain = { integer: "number", number: "number", string: "string", boolean: "boolean", null: "null" };

// type returns the type that a schema describes.
function type(schema, indent) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.map((choice) => type(choice, indent)).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((one) => type({ ...schema, type: one }, indent)).join(" | ");
  if (schema.type === "array") return list(schema, indent);
  if (schema.type === "object") return object(schema, indent);
  return plain[schema.type] ?? "unknown";
}

function list(schema, indent) {
  const item = type(schema.items ?? {}, indent);
  if (schema.minItems > 1 && schema.minItems === schema.maxItems) return `[${Array(schema.minItems).fill(item).join(", ")}]`;
  return `Array<${item}>`;
}

function object(schema, indent) {
  if (schema.properties) return fields(schema.properties, schema.required ?? [], indent);
  if (typeof schema.additionalProperties === "object") return `Record<string, ${type(schema.additionalProperties, indent)}>`;
  return "Record<string, unknown>";
}

function fields(properties, required, indent) {
  const inner = indent + "  ";
  const lines = Object.entries(properties).map(([name, schema]) => {
    const optional = required.includes(name) ? "" : "?";
    return `${comment(schema.description, inner)}${inner}${name}${optional}: ${type(schema, inner)};\n`;
  });
  return lines.length ? `{\n${lines.join("")}${indent}}` : "Record<string, never>";
}

function comment(description, indent) {
  if (!description) return "";
  const lines = description.replaceAll("*/", "*\\/").split("\n");
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join("")}${indent} */\n`;
}

function declaration(name, description, text) {
  const head = comment(description, "");
  return text.startsWith("{") ? `${head}export interface ${name} ${text}\n` : `${head}export type ${name} = ${text};\n`;
}

const declarations = Object.entries(document.components.schemas).map(([name, schema]) =>
  declaration(name, schema.description, type(schema, "")),
);

for (const operation of Object.values(document.paths).flatMap((calls) => Object.values(calls))) {
  const inQuery = (operation.parameters ?? []).filter((parameter) => parameter.in === "query");
  if (inQuery.length === 0) continue;
  const properties = Object.fromEntries(inQuery.map((p) => [p.name, { ...p.schema, description: p.description }]));
  const required = inQuery.filter((p) => p.required).map((p) => p.name);
  const name = operation.operationId[0].toUpperCase() + operation.operationId.slice(1) + "Query";
  declarations.push(declaration(name, `What to add to the call: ${operation.summary}.`, fields(properties, required, "")));
}

const made = `// Made by scripts/types.mjs of a server's /openapi.json. Do not edit.\n\n${declarations.join("\n")}`;
if (out) await writeFile(out, made);
else process.stdout.write(made);
