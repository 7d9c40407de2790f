package server

import (
	"net/http"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
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
