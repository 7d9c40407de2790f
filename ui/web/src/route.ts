// The current page, from the address after #, so that the page works at any path.
import { signal } from "@preact/signals";

export interface Route {
  page: "queues" | "queue" | "message" | "dead" | "schedules" | "schedule" | "workers" | "find" | "about";
  queue: string;
  id: string;
  query: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map((s) => {
    try {
      return decodeURIComponent(s);
    } catch {
      return s;
    }
  });
  const route: Route = { page: "queues", queue: "", id: "", query: new URLSearchParams(query) };
  if (parts[0] === "queues" && parts[1]) {
    route.queue = parts[1];
    route.page = "queue";
    if (parts[2] === "messages" && parts[3]) {
      route.id = parts[3];
      route.page = "message";
    }
  } else if (parts[0] === "schedules" && parts[1]) {
    route.page = "schedule";
    route.id = parts[1];
  } else if (parts[0] === "dead" || parts[0] === "schedules" || parts[0] === "workers" || parts[0] === "find" || parts[0] === "about") {
    route.page = parts[0];
  }
  return route;
}

export const route = signal<Route>(read());
addEventListener("hashchange", () => (route.value = read()));

const enc = encodeURIComponent;
export const toQueues = () => "#/";
export const toQueue = (queue: string, query = "") => `#/queues/${enc(queue)}${query && "?" + query}`;
export const toMessage = (queue: string, id: string) => `#/queues/${enc(queue)}/messages/${enc(id)}`;
export const toDead = (queue = "") => `#/dead${queue && "?queue=" + enc(queue)}`;

export const toSchedules = () => "#/schedules";
export const toSchedule = (name: string) => `#/schedules/${enc(name)}`;
export const toWorkers = (find = "") => `#/workers${find && "?find=" + enc(find)}`;
export const toFind = (text: string) => `#/find?q=${enc(text)}`;

export function go(to: string): void {
  location.hash = to;
}

// amend changes the query of the address without a new entry in the history.
export function amend(change: Record<string, string>): void {
  const query = new URLSearchParams(route.value.query);
  for (const [name, value] of Object.entries(change)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const path = location.hash.split("?")[0];
  history.replaceState(null, "", `${path}${query.size ? "?" + query : ""}`);
  route.value = read();
}
