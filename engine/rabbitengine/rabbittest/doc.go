// Package rabbittest starts real RabbitMQ brokers for tests: one that all tests of a process
// share, with a vhost for each, private ones that a test may kill, pause and alarm, clusters
// of them, and proxies before them. What is no matter of RabbitMQ is in package servertest.
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(rabbittest.Main(m)) }
//
//	url := rabbittest.Shared(t)           // an empty vhost of the shared broker
//	s := rabbittest.Start(t)              // a broker to be killed, paused and set up as one likes
//	url = s.URL()                         // its vhost "/"
//	url = s.Vhost()                       // an empty vhost of it
//	url = rabbittest.StartProxy(t, url).URL()
//	c := rabbittest.StartCluster(t, 3)    // c.Nodes are brokers as Start starts them
//	s.Alarm(true)                         // it takes no messages, until Alarm(false)
//	s.Ctl("close_all_connections", "why") // rabbitmqctl, which takes seconds; s.Eval does not
//
// URLs have the form amqp://guest:guest@host:port/vhost. A broker takes some four seconds of
// processor time to start: prefer Shared, and start one for several subtests.
//
// A broker has an epmd of its own on a port of its own, so that it neither needs nor touches
// the machine's, and reads nothing of what is configured for the machine's broker.
//
// The methods fail the test when they fail, so call them from its goroutine.
package rabbittest
