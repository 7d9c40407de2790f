// Package trend records what a client of tarry, its workers and a server on it did in the
// last minutes, hours and days. For each queue it counts the messages pushed, leased,
// handled, retried, dead and so on. It also has histograms of how late they were, and of how
// long their handling took.
//
//	r := trend.New(nil)
//	c, err := tarry.Open(ctx, "disk:tarry-data", &tarry.Config{Meter: r.Meter()})
//	…
//	s, err := r.Series("order.unpaid", 15*time.Minute, time.Minute)
//	p99, ok := s.Total().Lateness.Quantile(0.99)
//
// It stores slots of 10 s for 15 minutes, of 1 minute for 6 hours and of 10 minutes for 3
// days, in memory. A restart clears them, and they do not cover other processes on the same
// store.
//
// # Memory
//
// A queue takes about 1.5 KiB, and each slot with activity about 30 bytes. Config.MaxQueues
// bounds the queues and Config.MaxBytes the slots. With the defaults, 10,000 queues that are
// always busy take less than 50 MiB.
package trend
