// Package cost measures what metrics and traces cost, compared with the same work without
// them. It measures a server over HTTP, and a program that uses the library. It also measures
// what viewers of a server's dashboard cost the clients that push to it.
//
// Each variant runs in its own process. All do the same work in turns of a fraction of a
// second, in a changing order. Only the processor time of the variant's process counts:
// clients and the receiver of traces are elsewhere. Each round gives the ratio to the variant
// without, and five rounds give a median. Then new processes take over. The figure is the mean
// of these medians, with its uncertainty.
//
// Viewers run in their own process too. Pushes are measured with and without them in turns:
// the messages a second, and the server's processor time.
package cost
