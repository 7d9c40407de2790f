// Package servertest starts real servers that belong to one test, and proxies that
// spoil the connections to them. Each listens on loopback ports of its own, keeps its
// data in the test's temporary folder, and ends with the test, or with its process.
//
// A server of another kind needs its Command, and what is its own beside it:
//
//	dir := t.TempDir()
//	initialize(t, dir) // what must lie there before the first start
//	s := servertest.Start(t, servertest.Command{
//		Program: servertest.Installed(t, "postgres", "postgresql"),
//		Dir:     dir,
//		Args:    func(ports []int) []string { return []string{"-D", dir, "-p", strconv.Itoa(ports[0])} },
//		Ready:   []string{"ready to accept connections"},
//	})
//	p := servertest.StartProxy(t, s.Addr()) // the way to it, to be cut, held up and delayed
//	servertest.Await(t, "the first answer", func() error { return ping(p.Addr()) })
//
// The methods fail the test when they fail, so call them from its goroutine.
package servertest
