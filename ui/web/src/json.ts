// A JSON parser that keeps all digits of numbers and repeated names.
export type Node = { raw: string } | { open: "{" | "["; items: { name?: string; value: Node }[] };

const token = /\s*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))/y;

export const deepest = 200;

// parseJSON returns null if text is not JSON, or nested too deep to draw.
export function parseJSON(text: string): Node | null {
  token.lastIndex = 0;
  const next = (): string => token.exec(text)?.slice(1).find((x) => x !== undefined) ?? "";
  const value = (t: string, depth: number): Node => {
    if (t !== "{" && t !== "[") {
      if (t === "" || "}],:".includes(t)) throw new Error("no value");
      return { raw: t };
    }
    if (depth > deepest) throw new Error("too deep");
    const end = t === "{" ? "}" : "]";
    const items: { name?: string; value: Node }[] = [];
    let x = next();
    if (x === end) return { open: t, items };
    for (;;) {
      let name: string | undefined;
      if (t === "{") {
        if (x[0] !== '"' || next() !== ":") throw new Error("no name");
        name = x;
        x = next();
      }
      items.push(name === undefined ? { value: value(x, depth + 1) } : { name, value: value(x, depth + 1) });
      x = next();
      if (x === end) return { open: t, items };
      if (x !== ",") throw new Error("no comma");
      x = next();
    }
  };
  try {
    const root = value(next(), 0);
    return text.slice(token.lastIndex).trim() === "" ? root : null;
  } catch {
    return null;
  }
}
