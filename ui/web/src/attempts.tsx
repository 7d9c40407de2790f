// The attempts of a message: its worker, the last failures, and the backoff still to come.
import type { Failed, Message } from "./api";
import { Foreign, When } from "./parts";
import { toWorkers } from "./route";
import { many, visible } from "./text";
import { parseDuration, span } from "./time";

// toCome are the delays after the next failures, the last of which repeats.
function toCome(m: Message): number[] {
  const all = m.backoff ?? [];
  if (all.length === 0) return [];
  const used = m.state === "leased" ? m.attempt - 1 : m.attempt;
  const left = m.max_attempts - used - 1;
  return Array.from({ length: Math.max(0, Math.min(left, 8)) }, (_, i) => parseDuration(all[Math.min(used + i, all.length - 1)]!));
}

// Failures lists failed attempts, the newest first.
export function Failures({ all }: { all: Failed[] }) {
  return (
    <ol class="failures">
      {[...all].reverse().map((f) => (
        <li key={`${f.at} ${f.attempt}`}>
          <span class="muted">
            attempt {f.attempt}, <When t={f.at} />
            {f.worker && (
              <>
                , by <Foreign class="mono" text={f.worker} />
              </>
            )}
          </span>
          <pre class="error" tabIndex={0}>
            <bdi>{visible(f.error, true) || "no error given"}</bdi>
          </pre>
        </li>
      ))}
    </ol>
  );
}

export function Attempts({ m }: { m: Message }) {
  const ended = m.state === "dead" || m.state === "finished";
  const delays = ended ? [] : toCome(m);
  const left = m.max_attempts - m.attempt;
  return (
    <section aria-labelledby="attempts-title">
      <h2 id="attempts-title">Attempts</h2>
      <p>
        <strong class="large">{m.attempt}</strong>
        {m.max_attempts > 0 && ` of ${m.max_attempts}`}
        <span class="muted">{ended ? "" : left > 0 ? `, ${many(left, "is", "are")} left` : ", this is the last"}</span>
      </p>
      {m.max_attempts > 0 && <meter class="offscreen" aria-label="Attempts used" min={0} max={m.max_attempts} value={m.attempt} />}
      {m.max_attempts <= 40 && (
        <div class="pips" aria-hidden="true">
          {Array.from({ length: m.max_attempts }, (_, i) => (
            <i key={i} class={i < m.attempt ? (m.state === "leased" && i === m.attempt - 1 ? "now" : "used") : ""} />
          ))}
        </div>
      )}
      {m.worker && m.ending !== "cancelled" && (
        <p>
          Handled {m.state === "leased" && "now "}by{" "}
          <a href={toWorkers(m.worker)}>
            <Foreign class="mono" text={m.worker} />
          </a>
        </p>
      )}
      {m.failures ? (
        <>
          <h3>{m.failures.length > 1 ? "Last failures" : "Last failure"}</h3>
          <Failures all={m.failures} />
        </>
      ) : (
        m.last_error && (
          <>
            <h3>Last error</h3>
            <pre class="error" tabIndex={0}>
              <bdi>{visible(m.last_error.slice(0, 20_000), true)}</bdi>
            </pre>
          </>
        )
      )}
      {delays.length > 0 && (
        <>
          <h3>Backoff still to come</h3>
          <p class="backoff">
            {delays.map((d, i) => (
              <span key={i}>{span(d)}</span>
            ))}
            {left - 1 > delays.length && <span class="faint">…</span>}
          </p>
          <p class="faint">after the next failure, the one after that, and so on</p>
        </>
      )}
    </section>
  );
}
