// The intakes of the server, by which it takes messages from other systems.
import type { Intake } from "./api";
import { Badge, Foreign, When } from "./parts";
import { toQueue } from "./route";
import { count } from "./text";

export function Intakes({ all }: { all: Intake[] }) {
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="intakes-title">
      <h2 id="intakes-title">Intakes</h2>
      <div class="scroll">
        <table class="intakes">
          <thead>
            <tr>
              <th>Intake</th>
              <th>Queue</th>
              <th>State</th>
              <th class="num">Taken</th>
              <th class="num">Pushed</th>
              <th class="num">Doubles</th>
              <th class="num">Refused</th>
              <th class="num">Unacked</th>
              <th class="wide">Since</th>
            </tr>
          </thead>
          <tbody>
            {all.map((i) => (
              <tr key={i.name}>
                <td>
                  <Foreign class="mono" text={i.name} />
                </td>
                <td>
                  <a href={toQueue(i.queue)}>
                    <Foreign text={i.queue} />
                  </a>
                </td>
                <td>
                  <Badge kind={i.state} />
                  {i.error && <small><Foreign text={i.error} /></small>}
                  {i.hint && <small class="muted"><Foreign text={i.hint} /></small>}
                  {i.last_refused && <small class="muted">last refused: <Foreign text={i.last_refused} /></small>}
                </td>
                <td class="num">{count(i.taken)}</td>
                <td class="num">{count(i.pushed)}</td>
                <td class="num">{count(i.doubles)}</td>
                <td class="num">{count(i.refused)}</td>
                <td class="num">{count(i.unacked)}</td>
                <td class="wide">
                  <When t={i.since} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
