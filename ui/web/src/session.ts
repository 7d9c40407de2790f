// The viewer and the viewer's rights.
import { computed, signal } from "@preact/signals";
import { call, ended, get, type Info, type Standing } from "./api";

export const standing = signal<Standing | null>(null);
export const info = signal<Info | null>(null);

export const needsLogin = computed(() => ended.value || (standing.value?.needed ?? false));

async function settle(s: Standing): Promise<void> {
  if (!s.needed && !info.value) info.value = await get<Info>("v1/info");
  ended.value = false;
  standing.value = s;
}

export async function begin(): Promise<void> {
  await settle(await get<Standing>("session"));
}

export async function logIn(token: string): Promise<void> {
  await settle(await call<Standing>("POST", "session", { token }));
}

export async function logOut(): Promise<void> {
  await call("DELETE", "session");
  location.reload();
}

export type Scope = "push" | "work" | "read" | "operate";

// takes reports whether a token's pattern matches a queue. * stands for any characters.
// Queues of tarry's own match only a pattern that begins like them.
function takes(pattern: string, queue: string): boolean {
  if (queue.startsWith("tarry.") && !pattern.startsWith("tarry.")) return false;
  const parts = pattern.split("*");
  if (parts.length === 1) return pattern === queue;
  const first = parts[0]!;
  const last = parts[parts.length - 1]!;
  if (!queue.startsWith(first) || !queue.endsWith(last) || queue.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const i = queue.indexOf(part, at);
    if (i < 0) return false;
    at = i + part.length;
  }
  return at <= queue.length - last.length;
}

// may reports whether the viewer has one of the rights on a queue. The pages offer only what
// the viewer may do; the server checks again.
export function may(queue: string, ...scopes: Scope[]): boolean {
  return mayAnywhere(...scopes) && standing.value!.me!.queues.some((p) => takes(p, queue));
}

// mayAnywhere is may for any queue.
export function mayAnywhere(...scopes: Scope[]): boolean {
  const s = standing.value;
  if (!s?.me || (s.read_only && !scopes.includes("read"))) return false;
  return s.me.scopes.includes("admin") || scopes.some((x) => s.me!.scopes.includes(x));
}

// can reports whether the engine has a capability.
export const can = (what: string) => info.value?.capabilities[what] ?? false;
