package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/tarryhq/tarry"
)

type info struct {
	Version      string          `json:"version"`
	Engine       string          `json:"engine"`
	Capabilities map[string]bool `json:"capabilities"`
	Limits       limits          `json:"limits"`
	Now          string          `json:"now"`
}

// limits are what a request and a message may be. 0: no limit.
type limits struct {
	MaxBody     int    `json:"max_body"`
	MaxPending  int64  `json:"max_pending"`
	MaxRequest  int    `json:"max_request"`
	MaxBatch    int    `json:"max_batch"`
	MaxLease    int    `json:"max_lease"`
	MaxWait     string `json:"max_wait"`
	MaxQueues   int    `json:"max_queues"`
	MaxNow      int    `json:"max_queues_no_wait"`
	MinTTR      string `json:"min_ttr"`
	MaxTTR      string `json:"max_ttr"`
	MaxQueue    int    `json:"max_queue_bytes"`
	MaxKey      int    `json:"max_key_bytes"`
	MaxHeaders  int    `json:"max_headers"`
	HeaderBytes int    `json:"max_header_bytes"`
	MaxBackoffs int    `json:"max_backoffs"`
	MaxAttempts int    `json:"max_attempts"`
	Precision   string `json:"precision"`
	OrderWindow int    `json:"order_window"`
	MaxForecast int    `json:"max_forecast_steps"`
}

func (s *Server) info(x *exchange, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	c := s.c.Capabilities()
	b, err := json.Marshal(info{
		Version: s.cfg.Version,
		Engine:  c.Name,
		Capabilities: map[string]bool{
			"durable": c.Durable, "keys": c.Keys, "cancel": c.Cancel, "reschedule": c.Reschedule, "get": c.Get,
			"extend": c.Extend, "claim": c.Claim, "list": c.List, "count": c.Count, "forecast": c.Forecast,
			"pause": c.Pause, "purge": c.Purge, "redrive": c.Redrive, "atomic": c.Atomic,
		},
		Limits: limits{
			MaxBody: s.c.MaxBody(), MaxPending: c.MaxPending, MaxRequest: s.cfg.MaxRequest,
			MaxBatch: tarry.MaxBatch, MaxLease: tarry.MaxLease, MaxWait: tarry.FormatDuration(MaxWait),
			MaxQueues: MaxQueues, MaxNow: MaxQueuesNow,
			MinTTR: tarry.FormatDuration(tarry.MinTTR), MaxTTR: tarry.FormatDuration(tarry.MaxTTR),
			MaxQueue: tarry.MaxQueueBytes, MaxKey: tarry.MaxKeyBytes,
			MaxHeaders: tarry.MaxHeaders, HeaderBytes: tarry.MaxHeaderBytes,
			MaxBackoffs: tarry.MaxBackoffs, MaxAttempts: tarry.MaxMaxAttempts,
			Precision: tarry.FormatDuration(c.Precision), OrderWindow: c.Window, MaxForecast: 10_000,
		},
		Now: time.Now().UTC().Format(timeFormat),
	})
	if err != nil {
		return err
	}
	return s.answer(x, string(b))
}
