package mysqlengine

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// statement is a statement with its values. Its text contains numbers and most strings. The
// meaning of a backslash depends on sql_mode, so strings with one are arguments.
type statement struct {
	text  []byte
	args  []any
	size  int                           // of args, in bytes
	reads bool                          // it returns rows
	scan  func(sqlengine.Scanner) error // gets the rows; nil: they are skipped
}

// newStatement returns a statement with values in place of the question marks of a text.
func newStatement(text string, values ...any) *statement { return new(statement).add(text, values...) }

// add adds a text with values in the same way.
func (s *statement) add(text string, values ...any) *statement {
	for _, v := range values {
		before, after, _ := strings.Cut(text, "?")
		s.text = append(s.text, before...)
		s.put(v)
		text = after
	}
	s.text = append(s.text, text...)
	return s
}

// word is a value that is an SQL keyword.
type word string

const byDefault word = "DEFAULT"

const backslash = `\`

// put adds a value. It separates several values with commas.
func (s *statement) put(v any) {
	switch v := v.(type) {
	case nil:
		s.text = append(s.text, "NULL"...)
	case word:
		s.text = append(s.text, v...)
	case int64:
		s.text = strconv.AppendInt(s.text, v, 10)
	case int:
		s.text = strconv.AppendInt(s.text, int64(v), 10)
	case bool:
		s.text = strconv.AppendBool(s.text, v)
	case string:
		if strings.Contains(v, backslash) {
			s.beside([]byte(v))
		} else {
			s.quoted([]byte(v))
		}
	case []byte:
		switch {
		case v == nil:
			s.put(nil)
		case bytes.Contains(v, []byte(backslash)):
			s.beside(v)
		default:
			s.quoted(v)
		}
	case []int64:
		putAll(s, v)
	case []string:
		putAll(s, v)
	default:
		panic("unknown kind of value")
	}
}

// beside adds bytes as an argument.
func (s *statement) beside(v []byte) {
	s.text = append(s.text, '?')
	s.args = append(s.args, v)
	s.size += len(v)
}

// quoted adds bytes without a backslash to the text.
func (s *statement) quoted(v []byte) {
	s.text = append(s.text, "_binary'"...)
	for quote := bytes.IndexByte(v, '\''); quote >= 0; quote = bytes.IndexByte(v, '\'') {
		s.text = append(s.text, v[:quote]...)
		s.text = append(s.text, "''"...)
		v = v[quote+1:]
	}
	s.text = append(s.text, v...)
	s.text = append(s.text, '\'')
}

func putAll[T any](s *statement, all []T) {
	for i, v := range all {
		if i > 0 {
			s.text = append(s.text, ',')
		}
		s.put(v)
	}
}

// row adds values in brackets, after a comma unless n is 0.
func (s *statement) row(n int, values ...any) {
	if n > 0 {
		s.text = append(s.text, ',')
	}
	s.text = append(s.text, '(')
	putAll(s, values)
	s.text = append(s.text, ')')
}

// end adds the end of the text.
func (s *statement) end(text string) *statement {
	s.text = append(s.text, text...)
	return s
}

// bytes returns the greatest length of the statement when it is sent.
func (s *statement) bytes() int { return len(s.text) + 2*s.size + 16*len(s.args) }

// statements are the SQL texts for the tables of one store.
type statements struct {
	lockQueues, row, rows, heads, saveQueue string

	firstFrom [5]string

	names, makeNames, fenced, fence, queues, block, same string

	byID, byKey, remembered, lastDead, lastFinished, span, ranked, again, bodies, holding string

	insert, check, plain, move, rank, finish, replace, remove string

	over, remember, forget string

	tally, stock, due, changes, sum, onSum, zero, unsum string
}

const (
	// now is the time at which the statement began, in microseconds since 1970, independent
	// of the session's time zone.
	now = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`

	// columns selects a message without its body.
	columns = "m.id, m.queue, m.`key`, m.kind, m.ends, COALESCE(m.due, m.ends), m.expires, m.created, m.attempt, m.nonce, m.worker, m.failures, m.ending, m.policy, m.meta, m.size, "

	// changes selects the changes in a row t of tally_change.
	changes = "JSON_TABLE(t.changes, '$[*]' COLUMNS (minute BIGINT PATH '$[0]', n BIGINT PATH '$[1]')) c"

	readCommitted = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
)

// bodies selects the body, the last column of a message, if that is read and small.
var bodies = map[bool]string{false: "NULL", true: "m.body"}

// asEqual and asRange return conditions that a column has a value. The database can only make
// a range of the condition by asRange. With the condition by asEqual, it may read all rows
// with the value, up to where the rest of a condition begins: its statistics ignore deleted
// rows.
func asEqual(column, value string) string { return column + " = " + value }

func asRange(column, value string) string {
	return column + " >= " + value + " AND " + column + " <= " + value
}

// row ends a query for queues.
const row = now + ", q.num, q.name, q.paused, q.settings, q.revision, q.base, q.remembers FROM {queue} q WHERE q.num "

// heads returns the columns of the first rows of queues by kind, and of their first memories.
// Its bounds are numbers in the text: from columns or expressions the database makes no range.
// Each query reads a column that by_end lacks. Otherwise, in a small table, MySQL reads a whole
// index that has all columns, including deleted rows.
func heads(is func(column, value string) string, queue, from, memories string) [5]string {
	first := func(kind string) string {
		return "(SELECT CONCAT(ends, ' ', id) FROM {message} FORCE INDEX (by_end) WHERE " + is("queue", queue) + " AND " + is("kind", kind) + from + " ORDER BY queue, kind, ends, id LIMIT 1)"
	}
	return [...]string{first("0") + ", ", first("1") + ", ", first("2") + ", ", "IF(q.keeps, NULL, " + first("3") + "), ",
		"IF(q.remembers, (SELECT forgotten FROM {memory} FORCE INDEX (by_end) WHERE " + is("queue", queue) + memories + " ORDER BY queue, forgotten LIMIT 1), NULL), "}
}

// headsFrom returns the query for a queue's heads. It leaves out what has no row: the server
// takes time for each column.
func (s *statements) headsFrom(f *sqlengine.LowBound) *statement {
	q := newStatement("SELECT ")
	for k, p := range append(f.From[:], codec.Place{At: f.Forgotten}) {
		if p.At == math.MaxInt64 {
			q.add("NULL, ")
		} else {
			q.add(s.firstFrom[k], f.Queue, f.Queue, p.At, p.At, idBound(p.ID))
		}
	}
	return q.add(s.row, f.Queue)
}

// sum adds up a count.
func sum(count string) string { return "CAST(SUM(IF(t.c = " + count + ", t.n, 0)) AS SIGNED)" }

// statementsOf returns the statements for the tables with a prefix.
func statementsOf(prefix string) *statements {
	s := &statements{
		lockQueues: "num FROM {queue} WHERE num IN (?) ORDER BY num",
		row:        row + "= ?",
		rows:       "SELECT NULL, NULL, NULL, NULL, NULL, " + row + "IN (?)",
		firstFrom:  heads(asRange, "?", " AND ends >= ? AND (ends > ? OR id >= ?) AND attempt >= 0", " AND forgotten >= ? AND (forgotten > ? OR id >= ?)"),
		saveQueue:  "UPDATE {queue} SET paused = ?, settings = ?, revision = ?, base = ?, remembers = ?, keeps = ? WHERE num = ?",

		names:     "SELECT name, num FROM {queue} WHERE name IN (?)",
		makeNames: "INSERT INTO {queue} (num, name) VALUES ",
		fenced:    "SELECT id FROM {message} WHERE id IN (?)",
		fence:     "INSERT IGNORE INTO {message} (id, queue, kind, ends, due, grave, attempt) VALUES ",
		queues:    "SELECT num, name, paused, settings, revision FROM {queue} WHERE name > ? ORDER BY name LIMIT ?",
		block:     "UPDATE {id_block} SET last = LAST_INSERT_ID(GREATEST(last, " + now + ") + ?) WHERE one = 1",
		same:      "UPDATE {id_block} SET last = last WHERE one = 1",

		byID:         "FROM {message} m FORCE INDEX (PRIMARY) WHERE m.id IN (?) ORDER BY m.id",
		byKey:        "FROM {message} m FORCE INDEX (by_key) WHERE m.queue = ? AND m.`key` IN (?) AND m.grave = 0 ORDER BY m.`key`",
		remembered:   "m.queue, m.`key`, m.id, m.due, m.ending, m.ended, m.forgotten FROM {memory} m FORCE INDEX (PRIMARY) WHERE m.queue = ? AND m.`key` IN (?) ORDER BY m.`key`",
		lastDead:     "FROM {message} m FORCE INDEX (by_key) WHERE m.queue = ? AND m.`key` = ? AND m.grave >= ? ORDER BY m.grave DESC LIMIT 1",
		lastFinished: "FROM {message} m FORCE INDEX (by_key) WHERE m.queue = ? AND m.`key` = ? AND m.grave <= ? ORDER BY m.grave LIMIT 1",
		span:         "FROM {message} m FORCE INDEX (by_end) WHERE " + asRange("m.queue", "?") + " AND " + asRange("m.kind", "?"),
		ranked:       "SELECT id FROM (SELECT m.id, m.ends, m.priority FROM {message} m FORCE INDEX (by_end) WHERE " + asRange("m.queue", "?") + " AND " + asRange("m.kind", "?"),
		again:        "FROM {message} m FORCE INDEX (PRIMARY) WHERE m.id IN (?) AND m.queue = ? AND m.kind = ?",
		bodies:       "SELECT id, COALESCE(large, body) FROM {message} WHERE id IN (?)",
		holding:      "SELECT COUNT(*) FROM {message} FORCE INDEX (by_end) WHERE " + asRange("queue", "?") + " AND " + asRange("kind", "2") + " AND ends > ? AND ends < 9223372036854775807",

		insert: "INSERT INTO {message} (id, queue, `key`, ends, created, size, body",
		// Two rows, if a key is remembered, make it fail.
		check: "SELECT (SELECT 1 UNION ALL SELECT 1 FROM {memory} WHERE queue = ? AND `key` IN (?))",
		// The overflow makes it fail if the queue remembers keys.
		plain:   "SELECT 9223372036854775807 + remembers FROM {queue} WHERE num = ?",
		move:    "INSERT INTO {message} (id, kind, grave, ends, due, expires, attempt, nonce, worker, failures) VALUES ",
		rank:    "INSERT INTO {message} (id, ends, priority, policy) VALUES ",
		finish:  "UPDATE {message} m FORCE INDEX (PRIMARY) SET kind = 4, due = COALESCE(due, ends), ends = ?, grave = ?, ending = ?, worker = COALESCE(?, worker), size = 0, meta = NULL, body = NULL, large = NULL WHERE id IN (?)",
		replace: "INSERT INTO {message} (id, kind, grave, ends, due, expires, attempt, nonce, worker, failures, priority, policy, size, meta, body, large) VALUES ",
		// Without a limit MySQL reads a small table whole, and waits for rows that others have locked. With a limit MariaDB reads any table whole.
		remove: "DELETE /*M! m */ FROM {message} /*M! m FORCE INDEX (PRIMARY) */ WHERE id IN (?) /*!80019 ORDER BY id LIMIT ? */",

		over: "SELECT m.queue, m.`key`, m.id, m.due, m.ending, m.ended, m.forgotten FROM {memory} m FORCE INDEX (by_end) " +
			"WHERE " + asRange("m.queue", "?") + " AND m.forgotten >= ? AND m.forgotten <= ? AND m.ended <= ? ORDER BY m.queue, m.forgotten LIMIT ? FOR UPDATE SKIP LOCKED",
		remember: "INSERT INTO {memory} (queue, `key`, id, due, ending, ended, forgotten) VALUES ",
		forget:   "DELETE FROM {memory} WHERE queue = ? AND `key` IN (?)",

		tally: "INSERT INTO {tally_change} (queue, `count`, changes) VALUES ",
		// Count 0 is the number of ready messages here.
		stock: "SELECT t.queue, CAST(SUM(t.waiting) AS SIGNED), " + sum("0") + ", " + sum("2") + ", " + sum("3") + ", " + sum("4") + ", " + sum("5") + " FROM (" +
			"SELECT queue, `count` AS c, n, IF(`count` = 1, n, 0) AS waiting FROM {tally} WHERE queue IN (?) AND `count` IN (1, 2, 3, 4, 5) " +
			"UNION ALL SELECT queue, `count`, n, 0 FROM {tally} WHERE queue IN (?) AND `count` = 0 AND minute < ? " +
			"UNION ALL SELECT t.queue, t.`count`, IF(t.`count` > 0 OR c.minute < ?, c.n, 0), IF(t.`count` = 0, c.n, 0) FROM {tally_change} t, " + changes + " WHERE t.queue IN (?) " +
			"UNION ALL SELECT queue, 0, COUNT(*), 0 FROM {message} FORCE INDEX (by_end) WHERE queue IN (?) AND kind IN (0, 1) AND ends >= ? AND ends <= ? GROUP BY queue" +
			") t GROUP BY t.queue",
		due: "SELECT t.minute, CAST(SUM(t.n) AS SIGNED) FROM (" +
			"SELECT minute, n FROM {tally} WHERE queue = ? AND `count` = 0 AND minute < ? UNION ALL " +
			"SELECT c.minute, c.n FROM {tally_change} t, " + changes + " WHERE t.queue = ? AND t.`count` = 0 AND c.minute < ?) t " +
			"GROUP BY t.minute HAVING SUM(t.n) <> 0",
		changes: "SELECT seq, queue, `count`, changes FROM {tally_change} WHERE seq >= ? ORDER BY seq LIMIT ? FOR UPDATE SKIP LOCKED",
		sum:     "INSERT INTO {tally} (queue, `count`, minute, n) VALUES ",
		onSum:   meeting + "n = {tally}.n + " + met("n"),
		zero:    "DELETE FROM {tally} WHERE queue = ? AND `count` = ? AND minute IN (?) AND n = 0",
		unsum:   "DELETE FROM {tally_change} WHERE seq IN (?)",
	}
	all := heads(asEqual, "q.num", "", "")
	s.heads = "SELECT " + strings.Join(all[:], "") + row + "IN (?)"
	tables := strings.NewReplacer("{", "`"+prefix+"_", "}", "`")
	for i := range s.firstFrom {
		s.firstFrom[i] = tables.Replace(s.firstFrom[i])
	}
	for _, text := range []*string{
		&s.lockQueues, &s.row, &s.rows, &s.heads, &s.saveQueue, &s.names, &s.makeNames, &s.fenced, &s.fence, &s.queues, &s.block, &s.same,
		&s.byID, &s.byKey, &s.remembered, &s.lastDead, &s.lastFinished, &s.span, &s.ranked, &s.again, &s.bodies, &s.holding,
		&s.insert, &s.check, &s.plain, &s.move, &s.rank, &s.finish, &s.replace, &s.remove, &s.over, &s.remember, &s.forget,
		&s.tally, &s.stock, &s.due, &s.changes, &s.sum, &s.onSum, &s.zero, &s.unsum,
	} {
		*text = tables.Replace(*text)
	}
	return s
}

// Rows are updated by INSERT ... ON DUPLICATE KEY UPDATE: the fastest way in both databases to
// give many rows their own values. MariaDB names the new values VALUES(column), which MySQL
// deprecates; MySQL names them by an alias, which MariaDB lacks. Each skips the other's
// comments.
var (
	onMove    = onMeeting("kind", "grave", "ends", "due", "expires", "attempt", "nonce", "worker", "failures")
	onRank    = onMeeting("priority", "policy")
	onReplace = onMeeting("kind", "grave", "ends", "due", "expires", "attempt", "nonce", "worker", "failures", "priority", "policy", "size", "meta", "body", "large")

	onRemember = onMeeting("id", "due", "ending", "ended", "forgotten")
)

const meeting = " /*!80019 AS new */ ON DUPLICATE KEY UPDATE "

func met(column string) string {
	return "/*M! VALUES(" + column + ") */ /*!80019 new." + column + " */"
}

func onMeeting(columns ...string) string {
	for i, c := range columns {
		columns[i] = c + " = " + met(c)
	}
	return meeting + strings.Join(columns, ", ")
}

// Further locks besides those of sqlengine, for transactions that wait briefly or not at all.
const (
	brief sqlengine.Lock = sqlengine.Skip + 1 + iota
	least
)

// briefly begins a statement with a time limit in MariaDB. MySQL has one for queries only.
var briefly = fmt.Sprintf("/*M! SET STATEMENT max_statement_time=%g FOR */ ", sqlengine.BriefMost.Seconds())

// locks are the beginnings and endings of queries by lock. Waits under a second need a time
// limit for the whole statement: by SET STATEMENT in MariaDB, by a hint in MySQL.
var locks = [...]struct{ first, last string }{
	sqlengine.None: {"SELECT ", ""},
	sqlengine.Wait: {"SELECT ", " FOR UPDATE"},
	sqlengine.Skip: {"SELECT ", " FOR UPDATE SKIP LOCKED"},
	brief:          {briefly + fmt.Sprintf("SELECT /*+ MAX_EXECUTION_TIME(%d) */ ", sqlengine.BriefMost.Milliseconds()), " FOR UPDATE"},
	least:          {"SELECT ", " FOR UPDATE NOWAIT"},
}

// timeouts maps sqlengine.LockTimeout to locks.
var timeouts = [...]sqlengine.Lock{sqlengine.NoTimeout: sqlengine.Wait, sqlengine.BriefTimeout: brief, sqlengine.LeastTimeout: least}

// locking returns a query that locks the rows it reads.
func locking(lock sqlengine.Lock, text string, values ...any) *statement {
	return newStatement(locks[lock].first+text+locks[lock].last, values...)
}
