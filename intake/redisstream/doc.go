// Package redisstream takes messages from a Redis stream, as a consumer of a group:
//
//	redis://user:password@host:6379/0?stream=delayed&declare=true
//	rediss://host:6379?stream=delayed&group=tarry&consumer=a       over TLS
//
// The options of the URL, besides those of package forward/redisstream for user and TLS:
//
//   - stream: the stream's key.
//   - group: the consumer group; default tarry.
//   - declare: true makes the stream and the group, at its first entry, where they are missing.
//   - consumer: the name in the group, one for each process; default the host's name.
//   - idle: entries that another consumer has not acked for this long are taken over; default 1m.
//   - delete: true deletes entries that were acked, for other groups too. Otherwise senders
//     bound the stream.
//
// An entry has the field body; intake.Message.Field says what the others are. The entry's id
// makes a key for a message that has none, so that it is pushed once.
//
// An entry that can never be pushed is added to the stream named as this one with .refused at
// its end, with the reason in the field refused.
package redisstream
