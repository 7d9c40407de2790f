// Package rawhttp measures what raw requests cost a server: HTTP/1.1 on keep-alive
// connections, one message a request, without tarry's client. Only the processor time of the
// server's process counts.
//
// Beside tarry serve on a disk it puts the least servers of net/http that answer as late: one
// sleeps for each request, the other makes it durable in a bare log on the same disk. All do
// the same load in turns, in a changing order. The figures are medians of the turns; a ratio is
// the median of those within a round.
package rawhttp
