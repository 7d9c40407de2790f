// Package main replays a file of orders in virtual time: a shop's months in a few
// seconds, on the disk engine or in a database, with two delayed messages an order.
//
//	go run ./examples/orders --file FILE [--store DIR] [--messages URL] [--json]
//
// Every purchase pushes "cancel this order" for 30 minutes later, and an approval
// of the payment calls that off. Every review request pushes "rate it five stars"
// for 48 hours later, and an answer calls that off. The key of both is the order's
// id, so whoever approves or answers needs to know nothing of a message.
//
// # What counts
//
// Times count in whole milliseconds, as tarry's do; what is finer is cut off.
//
//   - A call-off in time is one not later than the due time. One that arrives in
//     the very millisecond in which the message is due wins: what happens at an
//     instant is applied first, then what is due at that instant is handled.
//   - A call-off that comes before its reason (an approval before the purchase, an
//     answer before the request) takes effect together with its reason: the
//     message is pushed and called off at once.
//   - A call-off whose reason never happened calls off nothing and is not counted.
//   - A purchase or request that is never called off is handled when due, however
//     far behind the last line of the file that lies.
//
// # Why a kill -9 changes no count
//
// A store holds the messages and replay.log, to which a record is appended now and
// then (see record): how many events have been applied, and how each order ended
// whose message was handled or called off since the record before. The record is
// on the disk before the handled messages are acked. So after a crash
//
//   - a message that was handled but not recorded is still there, and is handled
//     again, at the same virtual instant;
//   - one that was recorded but not acked is handled again, to the same end;
//   - one that is gone was either recorded as handled, or called off by us;
//   - a push repeated since the last record keeps the live message, and its due
//     time is computed from the file, so it never moves.
//
// The replay goes on behind the last record, the clock where it stood there. What
// it repeats from there ends as it did before, because nothing but the file
// decides the order of things.
package main
