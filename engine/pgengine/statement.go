package pgengine

import (
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// statements are the SQL statements for the tables of one schema.
type statements struct {
	lockQueues, rows, heads, live, saveQueue string

	names, makeNames, queues, block string

	byID, byKey, remembered, ended, forward, backward, ranked, bodies, holding string

	insert, check, move, rank, finish, replace, remove string

	over, remember, forget string

	tally, stock, due, fold, unfold string
}

// columns selects a message without its body. inline selects the body if that is small.
const (
	micros  = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint` // the time
	columns = `m.id, m.queue, m.key, m.kind, m.ends, m.due, m.expires, m.created, m.attempt, m.nonce, m.worker, m.failures, m.ending, m.policy, m.meta, coalesce(octet_length(m.body), 0)`
	inline  = `, CASE WHEN $%b::boolean AND octet_length(m.body) <= 8192 THEN m.body END`
)

// body is the column of the body if argument n is true.
func body(n string) string { return strings.ReplaceAll(inline, "%b", n) }

// row begins a query for queues.
const row = `SELECT q.num, q.name, q.paused, q.settings, q.revision, q.base, q.remembers, `

// first selects a queue's first row of a kind, from a bound on.
func first(kind string) string {
	return `(SELECT ARRAY[ends, id] FROM {message} WHERE queue = q.num AND kind = ` + kind +
		` AND (ends, id + 0) >= (u.at` + kind + `, u.id` + kind + `) ORDER BY ends, id + 0 LIMIT 1)`
}

// bounds follows the columns of heads.
const bounds = `
	FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])
	WITH ORDINALITY u(num, forgotten, at0, id0, at1, id1, at2, id2, at3, id3, n) JOIN {queue} q USING (num) ORDER BY u.n`

// At times the statistics say that a table is empty, however many dead rows vacuum had to
// leave in it. All plans then seem to cost the same, and PostgreSQL may choose one that walks
// over a whole index. So unnested rows are joined in two ways only. One is by conditions that
// only a look-up of each row can meet. The other is by a LATERAL with OFFSET 0, which is not
// flattened. A query asks for no order that an index has. Ids are found only by the primary
// key, because the other index has id + 0.
const (
	sameID = `m.id = ANY(ARRAY[u.id])`
	// Without $5 the bound is the present. A sub-query runs once, so an index can be used.
	highOrDue = `coalesce($5::bigint, (SELECT ` + micros + ` / 1000 + 1))`
	sameKey   = `m.queue = u.queue AND m.key = u.key COLLATE "C"`

	// remembers reports whether one of the queues may have memories: most queues have none.
	remembers = `EXISTS (SELECT FROM {queue} WHERE num = ANY($1) AND remembers)`
)

// statementsOf returns the statements for a schema.
func statementsOf(schema string) *statements {
	tables := strings.NewReplacer("{high}", highOrDue, "{id}", sameID, "{key}", sameKey, "{", pgx.Identifier{schema}.Sanitize()+".", "}", "")
	s := &statements{
		lockQueues: `SELECT num FROM {queue} WHERE num = ANY($1) ORDER BY num FOR UPDATE`,
		rows:       row + `NULL::bigint[], NULL::bigint[], NULL::bigint[], NULL::bigint[], NULL::bigint FROM {queue} q WHERE q.num = ANY($1)`,
		heads: row + first("0") + `, ` + first("1") + `, ` + first("2") + `, CASE WHEN NOT q.keeps THEN ` + first("3") + ` END,
			CASE WHEN q.remembers THEN (SELECT forgotten FROM {memory} WHERE queue = q.num AND forgotten >= u.forgotten ORDER BY forgotten LIMIT 1) END` + bounds,
		live:      row + first("0") + `, ` + first("1") + `, ` + first("2") + `, NULL::bigint[], NULL::bigint` + bounds,
		saveQueue: `UPDATE {queue} SET paused = $2, settings = $3, revision = $4, base = $5, remembers = $6, keeps = $7 WHERE num = $1`,

		names:     `SELECT name, num FROM {queue} WHERE name = ANY($1)`,
		makeNames: `INSERT INTO {queue} (num, name) SELECT num, name FROM unnest($1::bigint[], $2::text[]) u(num, name) ORDER BY name ON CONFLICT (name) DO NOTHING`,
		queues:    `SELECT num, name, paused, settings, revision FROM {queue} WHERE name > $1 ORDER BY name LIMIT $2`,
		// A failover may set the sequence back. The time, in eighths of a second, keeps ids new.
		block: `SELECT nextval('{id_block}') + ((extract(epoch FROM statement_timestamp()) * 8)::bigint << 17) FROM generate_series(1, $1)`,

		byID: `SELECT ` + columns + body("2") + ` FROM {message} m WHERE m.id = ANY($1) ORDER BY m.id + 0`,
		byKey: `SELECT ` + columns + body("3") + ` FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY u(queue, key, n),
			LATERAL (SELECT * FROM {message} m WHERE m.queue = u.queue AND m.key = u.key COLLATE "C" AND m.kind < 3 OFFSET 0) m ORDER BY u.n`,
		remembered: `SELECT m.queue, m.key, m.id, m.due, m.ending, m.ended, m.forgotten FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY u(queue, key, n),
			LATERAL (SELECT * FROM {memory} m WHERE {key} OFFSET 0) m WHERE ` + remembers + ` ORDER BY u.n`,
		ended: `SELECT ` + columns + body("5") + ` FROM {message} m WHERE m.queue = $1 AND m.key = $2 AND m.kind >= 3 AND m.kind = $3 AND m.ends >= $4
			ORDER BY m.ends DESC, m.id DESC LIMIT 1`,
		forward: `SELECT ` + columns + body("8") + ` FROM {message} m WHERE m.queue = $1 AND m.kind = $2
			AND (m.ends, m.id + 0) >= ($3, $4) AND (m.ends, m.id + 0) < ({high}, $6) ORDER BY m.ends, m.id + 0 LIMIT $7`,
		backward: `SELECT ` + columns + body("8") + ` FROM {message} m WHERE m.queue = $1 AND m.kind = $2
			AND (m.ends, m.id + 0) >= ($3, $4) AND (m.ends, m.id + 0) < ({high}, $6) ORDER BY m.ends DESC, m.id + 0 DESC LIMIT $7`,
		// Conditions on columns plus 0 have no index, so that the ids have to be looked up.
		ranked: `SELECT ` + columns + body("8") + ` FROM {message} m WHERE m.id = ANY(ARRAY(
				SELECT id FROM (SELECT id, ends, priority FROM {message} WHERE queue = $1 AND kind = $2
					AND (ends, id + 0) >= ($3, $4) AND (ends, id + 0) < ({high}, $6) ORDER BY ends, id + 0 LIMIT $9) w
				ORDER BY priority, ends, id LIMIT $10))
			AND m.queue + 0 = $1 AND m.kind + 0 = $2 AND (m.ends + 0, m.id + 0) < ({high}, $6) ORDER BY m.priority, m.ends, m.id LIMIT $7`,
		bodies:  `SELECT id, body FROM {message} WHERE id = ANY($1)`,
		holding: `SELECT count(*) FROM {message} WHERE queue = $1 AND kind = 2 AND ends > $2`,

		insert: `INSERT INTO {message} (id, queue, key, kind, ends, due, expires, created, attempt, priority, policy, meta, body)
			SELECT id, queue, key, CASE priority WHEN $5 THEN 0 ELSE 1 END, due, due, expires, $6, 0, priority, policy, meta, body
			FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $7::bigint[], $8::bigint[], $9::bytea[], $10::bytea[], $11::bytea[])
				u(id, queue, key, due, expires, priority, policy, meta, body)`,
		// The division by zero for a remembered key undoes the transaction without a round
		// trip.
		check: `SELECT 1 / CASE WHEN EXISTS (SELECT FROM unnest($1::bigint[], $2::text[]) u(queue, key),
			LATERAL (SELECT FROM {memory} m WHERE {key} OFFSET 0) m WHERE ` + remembers + `) THEN 0 ELSE 1 END`,
		move: `UPDATE {message} m SET kind = u.kind, ends = u.ends, due = u.due, expires = u.expires, attempt = u.attempt, nonce = u.nonce, worker = u.worker, failures = u.failures
			FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::text[], $9::bytea[])
				u(id, kind, ends, due, expires, attempt, nonce, worker, failures) WHERE {id}`,
		rank: `UPDATE {message} m SET priority = u.priority, policy = u.policy
			FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) u(id, priority, policy) WHERE {id}`,
		finish: `UPDATE {message} SET kind = 4, ends = coalesce(nullif($2::bigint, 9223372036854775807), ends), ending = $3, meta = NULL, body = NULL,
			worker = coalesce($4, worker) WHERE id = ANY($1)`,
		replace: `UPDATE {message} m SET kind = u.kind, ends = u.ends, due = u.due, expires = u.expires, attempt = u.attempt, nonce = u.nonce, worker = u.worker, failures = u.failures,
				priority = u.priority, policy = u.policy, meta = u.meta, body = u.body
			FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::text[], $9::bytea[],
				$10::bigint[], $11::bytea[], $12::bytea[], $13::bytea[])
				u(id, kind, ends, due, expires, attempt, nonce, worker, failures, priority, policy, meta, body) WHERE {id}`,
		remove: `DELETE FROM {message} WHERE id = ANY($1)`,

		over: `SELECT m.queue, m.key, m.id, m.due, m.ending, m.ended, m.forgotten FROM {memory} m WHERE m.queue = $1 AND m.forgotten >= $2 AND m.forgotten <= $3 AND m.ended <= $4
			ORDER BY m.forgotten LIMIT $5 FOR UPDATE OF m SKIP LOCKED`,
		remember: `INSERT INTO {memory} (queue, key, id, due, ending, ended, forgotten)
			SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::smallint[], $6::bigint[], $7::bigint[])
			ON CONFLICT (queue, key) DO UPDATE SET id = excluded.id, due = excluded.due, ending = excluded.ending,
				ended = excluded.ended, forgotten = excluded.forgotten`,
		forget: `DELETE FROM {memory} m USING unnest($1::bigint[], $2::text[]) u(queue, key) WHERE {key}`,

		tally: `INSERT INTO {tally_change} (queue, count, minutes, ns)
			SELECT queue, count, array_agg(minute), array_agg(n) FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[]) u(queue, count, minute, n)
			GROUP BY queue, count`,
		stock: `SELECT queue,
			coalesce(sum(n) FILTER (WHERE count = 1), 0)::bigint, coalesce(sum(n) FILTER (WHERE count = 0), 0)::bigint,
			coalesce(sum(n) FILTER (WHERE count = 2), 0)::bigint, coalesce(sum(n) FILTER (WHERE count = 3), 0)::bigint,
			coalesce(sum(n) FILTER (WHERE count = 4), 0)::bigint, coalesce(sum(n) FILTER (WHERE count = 5), 0)::bigint
			FROM (SELECT queue, count, n FROM {tally} WHERE queue = ANY($1) AND count IN (1, 2, 3, 4, 5)
				UNION ALL SELECT queue, count, n FROM {tally} WHERE queue = ANY($1) AND count = 0 AND minute < $3
				UNION ALL SELECT queue, count, n FROM {tally_change}, unnest(minutes, ns) u(minute, n) WHERE queue = ANY($1) AND (count > 0 OR minute < $3)
				UNION ALL SELECT queue, 0, count(*) FROM {message} WHERE queue = ANY($1) AND kind IN (0, 1) AND ends >= $3 * 60000 AND ends <= $2 GROUP BY queue) t
			GROUP BY queue`,
		due: `SELECT minute, sum(n)::bigint FROM (
				SELECT minute, n FROM {tally} WHERE queue = $1 AND count = 0 AND minute < $2
				UNION ALL SELECT minute, n FROM {tally_change}, unnest(minutes, ns) u(minute, n) WHERE queue = $1 AND count = 0 AND minute < $2) t
			GROUP BY minute HAVING sum(n) <> 0`,
		fold: `WITH gone AS (
				DELETE FROM {tally_change} WHERE seq IN (SELECT seq FROM {tally_change} WHERE seq >= $2 ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED)
				RETURNING seq, queue, count, minutes, ns),
			sums AS (SELECT queue, count, minute, sum(n)::bigint AS n FROM gone, unnest(minutes, ns) u(minute, n) GROUP BY queue, count, minute ORDER BY queue, count, minute),
			kept AS (INSERT INTO {tally} AS t (queue, count, minute, n) SELECT queue, count, minute, n FROM sums WHERE n <> 0
				ON CONFLICT (queue, count, minute) DO UPDATE SET n = t.n + excluded.n RETURNING queue, count, minute, t.n)
			SELECT (SELECT count(*) FROM gone), (SELECT coalesce(max(seq), 0) FROM gone), k.queue, k.count, k.minute FROM (SELECT) one LEFT JOIN kept k ON k.n = 0`,
		unfold: `DELETE FROM {tally} t USING unnest($1::bigint[], $2::smallint[], $3::bigint[]) u(queue, count, minute)
			WHERE t.queue = u.queue AND t.count = u.count AND t.minute = u.minute AND t.n = 0`,
	}
	for _, text := range []*string{
		&s.lockQueues, &s.rows, &s.heads, &s.live, &s.saveQueue, &s.names, &s.makeNames, &s.queues, &s.block,
		&s.byID, &s.byKey, &s.remembered, &s.ended, &s.forward, &s.backward, &s.ranked, &s.bodies, &s.holding,
		&s.insert, &s.check, &s.move, &s.rank, &s.finish, &s.replace, &s.remove, &s.over, &s.remember, &s.forget, &s.tally, &s.stock, &s.due, &s.fold, &s.unfold,
	} {
		*text = tables.Replace(*text)
	}
	return s
}

// locks are the endings of statements that read messages, by sqlengine.Lock.
var locks = [...]string{sqlengine.None: "", sqlengine.Wait: " FOR UPDATE OF m", sqlengine.Skip: " FOR UPDATE OF m SKIP LOCKED"}
