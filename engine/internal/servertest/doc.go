// Package servertest starts real servers that belong to one test, and proxies that
// spoil the connections to them. Each listens on loopback ports of its own, keeps its
// data in the test's temporary folder, and ends with the test, or with its process.
//
// A server of another kind needs its Command, and what is its own beside it:
//
//	dir := servertest.Folder(t, user)
//	servertest.Run(t, user, dir, initdb, "-D", "data") // what must lie there before the first start
//	s := servertest.Start(t, servertest.Command{
//		Program: servertest.Installed(t, "postgres", "postgresql"),
//		Dir:     dir,
//		User:    user, // who runs it, lest it be root
//		Args:    func(ports []int) []string { return []string{"-D", "data", "-p", strconv.Itoa(ports[0])} },
//		Ready:   []string{"ready to accept connections"},
//	})
//	p := servertest.StartProxy(t, "db://"+s.Addr()) // the way to it, to be cut, held up and delayed
//	servertest.Await(t, "the first answer", func() error { return ping(p.Addr()) })
//
// What costs much to make, and serves many tests, lasts until Main has run all of them;
// see Lasting.
//
// The environment variable TARRY_TEST_ROOT names a folder with other releases of the servers
// than the machine's own; see root.go.
//
// The methods fail the test when they fail, so call them from its goroutine.
package servertest
