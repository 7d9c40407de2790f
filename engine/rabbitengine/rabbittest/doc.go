// Package rabbittest starts real RabbitMQ brokers for tests. All tests of a process share
// one, with a vhost for each. There are also private brokers that a test may kill, pause and
// alarm, clusters, and proxies. Package servertest has what is not specific to RabbitMQ.
//
//	func TestMain(m *testing.M) { leaktest.Main(rabbittest.Main(m)) }
//
//	url := rabbittest.Shared(t)          // an empty vhost of the shared broker
//	s := rabbittest.Start(t)             // a private broker
//	url = s.URL()                        // its vhost "/"
//	url = s.Vhost()                      // an empty vhost of it
//	url = rabbittest.StartProxy(t, url).URL()
//	c := rabbittest.StartCluster(t, 3)   // c.Nodes are brokers, as from Start
//	s.Alarm(true)                        // it accepts no messages until Alarm(false)
//
// URLs have the form amqp://guest:guest@host:port/vhost. A broker takes some four seconds of
// processor time to start: prefer Shared, and start one for several subtests.
//
// A broker has its own epmd on its own port, so it neither needs nor affects the machine's,
// and it ignores the configuration of the machine's broker.
//
// The methods fail the test on errors, so call them from its goroutine.
package rabbittest
