package beanstalk_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestServ has the cases of beanstalkd's own testserv.c, under their names, except those of its binlog.
func TestServ(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		if kind == "postgres" && os.Getenv(kindVariable) == "" && os.Getenv("TARRY_TEST_THOROUGH") == "" {
			t.Skip("a database for each case takes long: TARRY_TEST_BEANSTALK=postgres")
		}
		for _, c := range servCases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				s := settings{maxJob: c.maxJob}
				if c.unix {
					s.unix = socket(t)
				}
				start(t, kind, s).play(t, c.script)
			})
		}
	})
}

var name200 = strings.Repeat("0123456789", 20)

var servCases = []struct {
	name   string
	script string
	maxJob int
	unix   bool
}{
	{name: "unknown_command", script: `
		> fetch-me-a-job
		< UNKNOWN_COMMAND`},
	{name: "too_long_commandline", script: `
		> ` + strings.Repeat("a", 500) + `
		< BAD_FORMAT
		> put 0 0 1 1
		> A
		< INSERTED $1`},
	{name: "put_in_drain", script: `
		drain
		> put 0 0 1 1
		> x
		< DRAINING`},
	{name: "peek_ok", script: peekOK},
	{name: "peek_ok_unix", unix: true, script: peekOK},
	{name: "peek_not_found", script: `
		> put 0 0 1 1
		> a
		< INSERTED $1
		> peek 0
		< NOT_FOUND
		> peek 9007199254740000
		< NOT_FOUND
		> peek 18446744073709551615
		< NOT_FOUND`},
	{name: "peek_delayed", script: `
		> peek-delayed
		< NOT_FOUND
		> put 0 0 1 1
		> A
		< INSERTED $1
		> put 0 99 1 1
		> B
		< INSERTED $2
		> put 0 1 1 1
		> C
		< INSERTED $3
		> peek-delayed
		< FOUND $3 1 | C
		> delete $3
		< DELETED
		> peek-delayed
		< FOUND $2 1 | B
		> delete $2
		< DELETED
		> peek-delayed
		< NOT_FOUND`},
	{name: "peek_buried_kick", script: `
		> put 0 0 60 1
		> A
		< INSERTED $1
		> bury $1 0
		< NOT_FOUND
		> peek-buried
		< NOT_FOUND
		> reserve-with-timeout 0
		< RESERVED $1 1 | A
		> bury $1 0
		< BURIED
		> peek-buried
		< FOUND $1 1 | A
		> kick 1
		< KICKED 1
		> peek-buried
		< NOT_FOUND
		> peek-ready
		< FOUND $1 1 | A
		> kick 1
		< KICKED 0`},
	{name: "touch_not_found", script: `
		> touch 1
		< NOT_FOUND
		> touch 100000000000000
		< NOT_FOUND`},
	{name: "release_not_found", script: `
		> release 1 1 1
		< NOT_FOUND`},
	{name: "kickjob_buried", script: `
		> put 0 0 60 1
		> A
		< INSERTED $1
		> reserve
		< RESERVED $1 1 | A
		> bury $1 0
		< BURIED
		> kick-job 100
		< NOT_FOUND
		> kick-job $1
		< KICKED
		> kick-job $1
		< NOT_FOUND`},
	{name: "kickjob_delayed", script: `
		> put 0 0 1 1
		> A
		< INSERTED $1
		> put 0 10 1 1
		> B
		< INSERTED $2
		> kick-job $1
		< NOT_FOUND
		> kick-job $2
		< KICKED
		> kick-job $2
		< NOT_FOUND`},
	{name: "pause", script: `
		> put 0 0 0 1
		> x
		< INSERTED $1
		mark
		> pause-tube default 1
		< PAUSED
		> reserve
		< RESERVED $1 1 | x
		took 1s`},
	{name: "underscore", script: `
		> use x_y
		< USING x_y`},
	{name: "2cmdpacket", script: `
		> use a\r\nuse b
		< USING a
		< USING b`},
	{name: "too_big", maxJob: 10, script: `
		> put 0 0 0 11
		> delete 9999
		> put 0 0 0 1
		> x
		< JOB_TOO_BIG
		< INSERTED $1`},
	{name: "job_size_invalid", maxJob: 1 << 20, script: `
		> put 0 0 0 4294967296
		> put 0 0 0 10b
		> put 0 0 0 --!@#$%^&&**()0b
		> put 0 0 0 1
		> x
		< BAD_FORMAT
		< BAD_FORMAT
		< BAD_FORMAT
		< INSERTED $1`},
	{name: "job_size_max_plus_1", maxJob: 3 << 20, script: `
		> put 0 0 0 3145729
		> ` + strings.Repeat("a", 3<<20) + `x
		< JOB_TOO_BIG
		> use t
		< USING t`},
	{name: "delete_ready", script: `
		> put 0 0 0 0
		>
		< INSERTED $1
		> delete $1
		< DELETED`},
	{name: "delete_reserved_by_other", script: `
		> put 0 0 60 1
		> a
		< INSERTED $1
		b> reserve
		b< RESERVED $1 1 | a
		> delete $1
		< NOT_FOUND`},
	{name: "multi_tube", script: `
		> use abc
		< USING abc
		> put 999999 0 0 0
		>
		< INSERTED $1
		> use def
		< USING def
		> put 99 0 0 0
		>
		< INSERTED $2
		> watch abc
		< WATCHING 2
		> watch def
		< WATCHING 3
		> reserve
		< RESERVED $2 0 | `},
	{name: "negative_delay", script: `
		> put 512 -1 100 0
		< BAD_FORMAT`},
	{name: "garbage_priority", script: `
		> put -1kkdj9djjkd9 0 100 1
		< BAD_FORMAT`},
	{name: "negative_priority", script: `
		> put -1 0 100 1
		< BAD_FORMAT`},
	{name: "max_priority", script: `
		> put 4294967295 0 100 1
		> a
		< INSERTED $1`},
	{name: "too_big_priority", script: `
		> put 4294967296 0 100 1
		< BAD_FORMAT`},
	{name: "omit_time_left", script: `
		> put 0 0 5 1
		> a
		< INSERTED $1
		? stats-job $1 | time-left: 0`},
	{name: "small_delay", script: `
		> put 0 1 1 0
		>
		< INSERTED $1`},
	{name: "zero_delay", script: `
		> put 0 0 1 0
		>
		< INSERTED $1`},
	{name: "delayed_to_ready", script: `
		mark
		> put 0 1 1 0
		>
		< INSERTED $1
		? stats-tube default | current-jobs-ready: 0
		? stats-tube default | current-jobs-delayed: 1
		? stats-tube default | total-jobs: 1
		~ stats-tube default | current-jobs-ready: 1
		took 1s
		? stats-tube default | current-jobs-delayed: 0
		? stats-tube default | total-jobs: 1`},
	{name: "stats_tube", script: `
		> use tubea
		< USING tubea
		> put 0 0 0 1
		> x
		< INSERTED $1
		> delete $1
		< DELETED
		` + has("stats-tube tubea", "name: tubea", "current-jobs-urgent: 0", "current-jobs-ready: 0", "current-jobs-reserved: 0",
		"current-jobs-delayed: 0", "current-jobs-buried: 0", "total-jobs: 1", "current-using: 1", "current-watching: 0",
		"current-waiting: 0", "cmd-delete: 1", "cmd-pause-tube: 0", "pause: 0", "pause-time-left: 0") +
		has("stats-tube default", "name: default", "current-jobs-urgent: 0", "current-jobs-ready: 0", "current-jobs-reserved: 0",
			"current-jobs-delayed: 0", "current-jobs-buried: 0", "total-jobs: 0", "current-using: 0", "current-watching: 1",
			"current-waiting: 0", "cmd-delete: 0", "cmd-pause-tube: 0", "pause: 0", "pause-time-left: 0")},
	{name: "ttrlarge", script: ttrs(120, 4294, 4295, 4296, 4297, 5000, 21600)},
	{name: "ttr_small", script: `
		> put 0 0 0 1
		> a
		< INSERTED $1
		? stats-job $1 | ttr: 1`},
	{name: "reserve_with_timeout_2conns", script: `
		> watch foo
		< WATCHING 2
		mark
		> reserve-with-timeout 1
		b> watch foo
		b< WATCHING 2
		< TIMED_OUT
		took 1s`},
	{name: "reserve_ttr_deadline_soon", script: `
		> put 0 0 2 1
		> a
		< INSERTED $1
		mark
		> reserve-with-timeout 1
		< RESERVED $1 1 | a
		wait 200ms
		? stats-job $1 | state: reserved
		> reserve-with-timeout 2
		< DEADLINE_SOON
		took 1s
		? stats-job $1 | state: reserved
		> release $1 0 0
		< RELEASED
		? stats-job $1 | state: ready`},
	{name: "reserve_job_ttr_deadline_soon", script: `
		> put 0 5 2 1
		> a
		< INSERTED $1
		? stats-job $1 | state: delayed
		mark
		> reserve-job $1
		< RESERVED $1 1 | a
		wait 100ms
		? stats-job $1 | state: reserved
		> reserve-with-timeout 2
		< DEADLINE_SOON
		? stats-job $1 | state: reserved
		~ stats-job $1 | state: ready
		took 2s`},
	{name: "reserve_job_already_reserved", script: `
		> put 0 0 60 1
		> A
		< INSERTED $1
		> reserve-job $1
		< RESERVED $1 1 | A
		> reserve-job $1
		< NOT_FOUND`},
	{name: "reserve_job_ready", script: `
		> put 0 0 60 1
		> A
		< INSERTED $1
		> put 0 0 60 1
		> B
		< INSERTED $2
		> reserve-job $2
		< RESERVED $2 1 | B
		> reserve-job 9007199254740000
		< NOT_FOUND
		> release $1 1 0
		< NOT_FOUND
		> release $2 1 0
		< RELEASED`},
	{name: "reserve_job_delayed", script: `
		> put 0 100 60 1
		> A
		< INSERTED $1
		> put 0 100 60 1
		> B
		< INSERTED $2
		> put 0 100 60 1
		> C
		< INSERTED $3
		> reserve-job $2
		< RESERVED $2 1 | B
		> release $2 1 0
		< RELEASED
		? stats-job $2 | state: ready`},
	{name: "reserve_job_buried", script: `
		> put 0 0 60 1
		> A
		< INSERTED $1
		> reserve-job $1
		< RESERVED $1 1 | A
		> bury $1 1
		< BURIED
		> put 0 0 60 1
		> B
		< INSERTED $2
		> reserve-job $2
		< RESERVED $2 1 | B
		> bury $2 1
		< BURIED
		> reserve-job $2
		< RESERVED $2 1 | B
		> reserve-job $1
		< RESERVED $1 1 | A
		> release $1 1 0
		< RELEASED
		> release $2 1 0
		< RELEASED
		? stats-job $1 | state: ready
		? stats-job $2 | state: ready`},
	{name: "close_releases_job", script: heldBy + `
		close b
		> reserve-with-timeout 1
		< RESERVED $1 1 | a`},
	{name: "quit_releases_job", script: heldBy + `
		b> quit
		b< EOF
		> reserve-with-timeout 0
		< RESERVED $1 1 | a`},
	{name: "unpause_tube", script: `
		> put 0 0 0 0
		>
		< INSERTED $1
		> pause-tube default 86400
		< PAUSED
		b> reserve
		> pause-tube default 0
		< PAUSED
		b< RESERVED $1 0 | `},
	{name: "list_tube", script: `
		> watch w
		< WATCHING 2
		> use u
		< USING u
		> list-tubes
		< OK 22 | --- - default - w - u
		> list-tube-used
		< USING u
		> list-tubes-watched
		< OK 18 | --- - default - w
		> ignore default
		< WATCHING 1
		> list-tubes-watched
		< OK 8 | --- - w
		> ignore w
		< NOT_IGNORED`},
	{name: "use_tube_long", script: `
		> use ` + name200 + `
		< USING ` + name200 + `
		> use ` + name200 + `Z
		< BAD_FORMAT`},
	{name: "longest_command", script: `
		> use ` + name200 + `
		< USING ` + name200 + `
		> pause-tube ` + name200 + ` 4294967295
		< PAUSED`},
	{name: "peek_bad_format", script: badFormat("peek 18446744073709551616", "peek 184467440737095516160000000000000000000000000000",
		"peek foo111", "peek 111foo")},
	{name: "delete_bad_format", script: badFormat("delete 18446744073709551616", "delete 184467440737095516160000000000000000000000000000",
		"delete foo111", "delete 111foo")},
	{name: "touch_bad_format", script: badFormat("touch a111", "touch 111a", "touch !@#!@#")},
	{name: "bury_bad_format", script: badFormat("bury 111abc 2", "bury 111", "bury 111 222abc")},
	{name: "kickjob_bad_format", script: badFormat("kick-job a111", "kick-job 111a", "kick-job !@#!@#")},
	{name: "release_bad_format", script: badFormat("release 18446744073709551616 1 1",
		"release 184467440737095516160000000000000000000000000000 1 1", "release foo111", "release 111foo",
		"release 18446744073709551615 abc 1", "release 18446744073709551615 1 abc")},
	{name: "statsjob_ck_format", script: badFormat("stats-job 111ABC", "stats-job 111 222") + `
		> stats-job 111
		< NOT_FOUND`},
}

const peekOK = `
	> put 0 0 1 1
	> a
	< INSERTED $1
	> peek $1
	< FOUND $1 1 | a`

// heldBy has connection b hold a job.
const heldBy = `
	b> reserve-with-timeout 10
	> put 0 0 100 1
	> a
	< INSERTED $1
	b< RESERVED $1 1 | a
	? stats-job $1 | state: reserved`

func badFormat(commands ...string) string {
	text := ""
	for _, c := range commands {
		text += "\n> " + c + "\n< BAD_FORMAT"
	}
	return text
}

func has(command string, lines ...string) string {
	text := ""
	for _, line := range lines {
		text += "\n? " + command + " | " + line
	}
	return text + "\n"
}

func ttrs(seconds ...int) string {
	text := ""
	for i, ttr := range seconds {
		text += fmt.Sprintf("\n> put 0 0 %d 1\n> a\n< INSERTED $%d\n? stats-job $%d | ttr: %d", ttr, i, i, ttr)
	}
	return text
}
