package server

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

var callInfo = &call{
	id: "getInfo", group: groupServer, does: "Tell what the server and its engine are and can do",
	answers: ok("What they are and can do.", wire.ServerTells.Ref()),
}

func (s *Server) info(x *exchange, r *http.Request) error {
	told := wire.Server{
		Version: s.cfg.Version,
		Limits: wire.Limits{
			MaxBody: s.c.MaxBody(), MaxRequest: s.cfg.MaxRequest,
			MaxBatch: tarry.MaxBatch, MaxAtomic: engine.MaxAtomic, AtomicBytes: engine.MaxAtomicBytes, MaxLease: tarry.MaxLease, MaxWait: wire.Duration(MaxWait),
			MaxQueues: MaxQueues, MaxNow: MaxQueuesNow,
			MinTTR: wire.Duration(tarry.MinTTR), MaxTTR: wire.Duration(tarry.MaxTTR),
			MaxQueue: tarry.MaxQueueBytes, MaxKey: tarry.MaxKeyBytes,
			MaxHeaders: tarry.MaxHeaders, HeaderBytes: tarry.MaxHeaderBytes,
			MaxBackoffs: tarry.MaxBackoffs, MaxAttempts: tarry.MaxMaxAttempts, MaxForecast: engine.MaxSteps,
		},
		Trends: s.cfg.Trends != nil,
		Now:    wire.Time{Time: time.Now()},
	}
	if s.cfg.Beanstalk != nil {
		told.Beanstalk = new(wire.BeanstalkClients)
		told.Beanstalk.Connections, told.Beanstalk.Waiting = s.cfg.Beanstalk()
	}
	told.Tell(s.c.Capabilities())
	return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, &told) })
}

var callMe = &call{
	id: "getCaller", group: groupServer, does: "Tell the caller's token and its rights",
	more:    "Where the server needs no token, everything is allowed.",
	answers: ok("The token and its rights.", wire.CallerTold.Ref()),
}

// me answers with the rights of the request's token.
func (s *Server) me(x *exchange, r *http.Request) error {
	c := wire.Caller{Scopes: access.Admin.Names(), Queues: []string{"*", "tarry.*"}}
	if t := x.token; t != nil {
		c = wire.Caller{Name: t.Name, Scopes: t.Scopes.Names(), Queues: t.Queues, Expires: wire.Time{Time: t.Expires}}
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, &c) })
}

var callIntakes = &call{
	id: "listIntakes", group: groupServer, does: "List the intakes",
	more:    "They take messages from other systems. Counts begin with the server. A token is told of the intakes whose queue it may read.",
	answers: ok("The intakes.", wire.IntakesAnswer.Ref()),
}

// listIntakes lists the intakes that the token may see.
func (s *Server) listIntakes(x *exchange, _ *http.Request) error {
	told := wire.Intakes{Intakes: []wire.Intake{}}
	for _, i := range s.intakes(x) {
		told.Intakes = append(told.Intakes, wire.Intake{
			Name: i.Name, Queue: i.Queue, State: string(i.State), Since: wire.Time{Time: i.Since},
			Code: i.Code, Error: i.Error, Hint: i.Hint,
			Taken: i.Taken, Pushed: i.Pushed, Doubles: i.Doubles, Cancelled: i.Cancelled, Missed: i.Missed,
			Refused: i.Refused, Redelivered: i.Redelivered, Doubtful: i.Doubtful,
			Unacked: i.Unacked, LastRefused: i.LastRefused,
		})
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, &told) })
}

// intakes returns the intakes that the token may see.
func (s *Server) intakes(x *exchange) (seen []intake.Status) {
	if s.cfg.Intakes == nil {
		return nil
	}
	for _, i := range s.cfg.Intakes() {
		if x.maySeeTrend(i.Queue) {
			seen = append(seen, i)
		}
	}
	return seen
}

// intakeProblems returns a problem for each intake that fails.
func (s *Server) intakeProblems(x *exchange) (all []Problem) {
	for _, i := range s.intakes(x) {
		if i.State == intake.Failing {
			all = append(all, Problem{Problem: "intake", Queue: i.Queue, Message: "the intake " + i.Name + " fails: " + i.Error, Hint: i.Hint})
		}
	}
	return all
}

var callBackup = &call{
	id: "backUp", group: groupServer, does: "Back the store up",
	more:    "It needs the scope admin on all queues, and a server that was given a directory for backups.",
	request: wire.Backing.Shape, answers: ok("The backup that was made.", wire.BackedUp.Ref()),
	fails:   []error{engine.ErrNoSpace, engine.ErrUnsupported},
	example: json.RawMessage(`{"name":"orders"}`),
}

// backup brings a backup up to date.
func (s *Server) backup(x *exchange, r *http.Request) error {
	if x.token != nil && !x.token.MayAll(access.Admin) {
		return x.forbidden(access.Admin, "all queues")
	}
	name, err := decode(x, r, wire.Backing)
	if err != nil {
		return err
	}
	x.note("name", name)
	b, ok := s.c.Engine().(engine.Backuper)
	switch {
	case !ok:
		return &engine.Error{Op: "backup", Err: engine.ErrUnsupported, Hint: "the store of this server is not backed up so"}
	case s.cfg.BackupDir == "":
		return &engine.Error{Op: "backup", Err: engine.ErrUnsupported, Hint: "give the server a directory for backups: tarry serve --backup-dir"}
	}
	made, err := b.Backup(r.Context(), filepath.Join(s.cfg.BackupDir, name))
	if err != nil {
		return err
	}
	return respond(x, wire.BackedUp, &wire.Backup{Name: name, Backup: made})
}
