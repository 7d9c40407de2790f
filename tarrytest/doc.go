// Package tarrytest tests code that delays messages: 48 hours pass at once.
//
//	func TestUnratedRide(t *testing.T) {
//		q := tarrytest.New(t)
//		shop := NewShop(q.Client) // the code under test; q.Client is a *tarry.Client
//
//		shop.Finish(ctx, ride)
//		tarrytest.RequirePushed(t, q, Rides, ride, tarry.In(48*time.Hour), tarry.Key("7"))
//
//		q.Advance(48 * time.Hour)
//		q.Work(ctx, shop.Worker())
//		// now the ride has five stars
//	}
//
// A Client keeps its messages in memory. Its clock stands until Advance moves it. Work runs
// a worker, with its middleware, guards, retries and backoff, until nothing of its queues is
// due; WorkAll moves the clock to each due time, until nothing is left. Start runs a worker
// for the whole test, and Advance then stops at each due time on its way.
//
// RequirePushed and RequireNothingPushed look at what was pushed, whatever has become of it;
// but what was cancelled counts as never pushed. Pushed returns it. The options of
// RequirePushed are those of a push, and those that are not given may be anything.
//
// Only the messages are on the clock of the Client. Code that reads time.Now needs Client.Now
// in its place, or a testing/synctest bubble: NewInBubble returns a Client with the clock of
// the bubble.
//
// Recorder is for code that pushes through an interface of its own, package
// tarrytest/remote for code that talks to a tarry server.
package tarrytest
