// Formatting of numbers and of text from outside.
const plain = new Intl.NumberFormat("en-US");

export const count = (n: number) => plain.format(n);

// short formats a number in at most five characters.
export function short(n: number): string {
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]] as const) {
    if (n >= size) {
      const v = n / (unit === "k" ? 1e3 : size);
      return (v < 100 ? v.toFixed(1).replace(/\.0$/, "") : Math.floor(v)) + unit;
    }
  }
  return plain.format(n);
}

// rate formats a number per second.
export const rate = (n: number) => (n === 0 ? "0" : n < 10 ? n.toFixed(n < 0.1 ? 2 : 1) : short(Math.round(n)));

export const many = (n: number, one: string, more = one + "s") => `${count(n)} ${n === 1 ? one : more}`;

export function bytes(n: number): string {
  if (n < 1024) return many(n, "byte");
  for (const [size, unit] of [[1 << 30, "GiB"], [1 << 20, "MiB"], [1 << 10, "KiB"]] as const)
    if (n >= size) return `${(n / size).toFixed(n / size < 10 ? 1 : 0)} ${unit}`;
  return "";
}

// Characters that are invisible or change how others are shown.
const hidden = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

// visible replaces invisible characters: control characters by their pictures, those that
// change the direction of text by their numbers.
export function visible(s: string, lines = false): string {
  return s.replace(hidden, (c) => {
    const n = c.charCodeAt(0);
    if (lines && (n === 10 || n === 9)) return c;
    if (n < 0x20) return String.fromCharCode(0x2400 + n);
    if (n === 0x7f) return "\u2421";
    return `\u27e8U+${n.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}
