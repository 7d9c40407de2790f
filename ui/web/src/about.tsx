// The server: its version, engine and limits.
import { Figure } from "./parts";
import { info, standing } from "./session";
import { count } from "./text";

export function About() {
  const i = info.value!;
  const me = standing.value?.me;
  return (
    <>
      <div class="title">
        <h1>About</h1>
      </div>
      <dl class="figures">
        <Figure name="Version">{i.version}</Figure>
        <Figure name="Engine">{i.engine}</Figure>
        <Figure name="Server's time">{i.now.slice(0, 19).replace("T", " ")} UTC</Figure>
      </dl>
      <div class="columns">
        <section aria-labelledby="you-title">
          <h2 id="you-title">You</h2>
          <dl class="details">
            <div>
              <dt>Token</dt>
              <dd>{me?.name || <span class="faint">none is needed</span>}</dd>
            </div>
            <div>
              <dt>May</dt>
              <dd>{me?.scopes.join(", ")}{standing.value?.read_only && "; this dashboard is read-only"}</dd>
            </div>
            <div>
              <dt>On the queues</dt>
              <dd class="mono">{me?.queues.join(" ")}</dd>
            </div>
          </dl>
          <p class="muted">Your changes are recorded in the server's audit log.</p>
        </section>
        <section aria-labelledby="can-title">
          <h2 id="can-title">The engine can</h2>
          <ul class="abilities">
            {Object.entries(i.capabilities).map(([name, able]) => (
              <li key={name} class={able ? "" : "faint"}>
                <span aria-hidden="true">{able ? "✓" : "–"}</span> {name.replaceAll("_", " ")}
                {!able && <span class="offscreen">: no</span>}
              </li>
            ))}
          </ul>
        </section>
        <section aria-labelledby="limits-title">
          <h2 id="limits-title">Limits</h2>
          <dl class="details">
            {Object.entries(i.limits).map(([name, v]) => (
              <div key={name}>
                <dt>{name.replaceAll("_", " ")}</dt>
                <dd>{v === 0 || v === "0s" ? "no limit" : typeof v === "number" ? count(v) : v}</dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
    </>
  );
}
