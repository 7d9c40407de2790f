// Package cost measures what metrics and traces cost, beside the same without them: of a
// server over HTTP, and of a program with the library; and what those who watch a server's
// dashboard cost those who push to it.
//
// Each way to measure runs in a process of its own, all of them on the same work in turns
// of a fraction of a second, in an order that changes. What counts is the processors' time
// of that process alone: clients, and the receiver of the traces, are elsewhere. Of each
// round the ratio to the same without is taken, of five rounds the median; then new
// processes take over. The figure is the mean of these medians, and how well it is known is
// told beside.
//
// Who watches is in a process of its own, too, that pushes are measured with and without in
// turns: the messages a second, and the processors' time of the server.
package cost
