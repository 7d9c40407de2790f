// The workers that the server serves, and others that hold leases in its store.
import { useState } from "preact/hooks";
import { get, type Info, type Intake, type Worker } from "./api";
import { Intakes } from "./intakes";
import { Badge, Empty, Foreign, Trouble, When } from "./parts";
import { useReading } from "./reading";
import { amend, route, toQueue } from "./route";
import { count, many } from "./text";
import { tick } from "./time";

interface Told {
  workers: Worker[];
  more: boolean;
}

const shownQueues = 3;

export function Workers() {
  const [told, setTold] = useState<Told | null>(null);
  const [clients, setClients] = useState<Info["beanstalk"]>();
  const [intakes, setIntakes] = useState<Intake[]>([]);
  const [error, setError] = useState<unknown>(null);
  const find = route.value.query.get("find") ?? "";
  useReading("workers", Math.floor(tick.value / 3), 3000, (stop) =>
    Promise.all([get<Told>("v1/workers", stop), get<Info>("v1/info", stop), get<{ intakes: Intake[] }>("v1/intakes", stop)]).then(
      ([t, i, into]) => (setTold(t), setClients(i.beanstalk), setIntakes(into.intakes), setError(null)),
      (err) => {
        if (!stop.aborted) setError(err);
      },
    ),
  );
  const want = find.trim().toLowerCase();
  const some = (told?.workers ?? []).filter((w) => [w.name, w.address, ...w.queues].some((text) => text.toLowerCase().includes(want)));
  return (
    <>
      <div class="title">
        <h1>Workers</h1>
        <span class="muted">{told && `${count(told.workers.length)}${told.more ? ", and there may be more" : ""}`}</span>
      </div>
      <div class="bar">
        <label class="find">
          <span class="offscreen">Filter workers by name, address or queue</span>
          <input type="search" placeholder="Name, address or queue" value={find} spellcheck={false} onInput={(e) => amend({ find: e.currentTarget.value })} />
          <kbd aria-hidden="true">/</kbd>
        </label>
      </div>
      {clients && (
        <p class="muted" id="beanstalk">
          Clients of beanstalkd: {many(clients.connections, "connection")}, {count(clients.waiting)} waiting for a job.
        </p>
      )}
      <Trouble error={error} />
      {some.length > 0 ? (
        <Table all={some} />
      ) : told ? (
        <Empty title={want ? "No worker matches." : "No worker has asked for messages in the last 5 minutes."} />
      ) : (
        !error && <p class="muted pad">Loading…</p>
      )}
      <Intakes all={intakes} />
    </>
  );
}

function Table({ all }: { all: Worker[] }) {
  return (
    <div class="scroll">
      <table class="workers">
        <thead>
          <tr>
            <th>Worker</th>
            <th>Queues</th>
            <th class="num">Leased</th>
            <th class="num">Handled</th>
            <th class="num">Failed</th>
            <th class="wide">Last seen</th>
            <th class="wide">Since</th>
            <th class="wide">Version</th>
          </tr>
        </thead>
        <tbody>
          {all.map((w) => (
            <tr key={`${w.name} ${w.address} ${w.elsewhere}`}>
              <td>
                <Foreign class="mono" text={w.name || w.address} /> {w.elsewhere && <Badge kind="elsewhere" />}
                {w.name && w.address && <small class="muted">{w.address}</small>}
              </td>
              <td>
                {w.queues.slice(0, shownQueues).map((q) => (
                  <a key={q} href={toQueue(q, "state=leased")}>
                    <Foreign text={q} />
                  </a>
                ))}
                {(w.queues.length > shownQueues || w.more_queues) && <small class="muted" title={w.queues.join(" ")}>{w.more_queues ? "and more" : `and ${count(w.queues.length - shownQueues)} more`}</small>}
              </td>
              <td class="num">{count(w.leased)}</td>
              <td class="num">{w.elsewhere ? "–" : count(w.handled)}</td>
              <td class="num">{w.elsewhere ? "–" : count(w.failed)}</td>
              <td class="wide">
                <When t={w.seen} />
              </td>
              <td class="wide">
                <When t={w.since} />
              </td>
              <td class="wide mono">{w.version && <Foreign text={w.version} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
