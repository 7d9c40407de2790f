// Package servertest starts real servers that belong to one test, and proxies that inject
// faults into connections to them. Each server listens on its own loopback ports, has its own
// temporary directory, and ends with the test or its process.
//
// Each kind of server needs a Command, and perhaps more:
//
//	dir := servertest.Folder(t, user)
//	servertest.Run(t, user, dir, initdb, "-D", "data") // before the first start
//	s := servertest.Start(t, servertest.Command{
//		Program: servertest.Installed(t, "postgres", "postgresql"),
//		Dir:     dir,
//		User:    user, // not root
//		Args:    func(ports []int) []string { return []string{"-D", "data", "-p", strconv.Itoa(ports[0])} },
//		Ready:   []string{"ready to accept connections"},
//	})
//	p := servertest.StartProxy(t, "db://"+s.Addr()) // it can cut, hang and delay connections
//	servertest.Await(t, "the first answer", func() error { return ping(p.Addr()) })
//
// A server for many tests can last until the end of Main: see Lasting.
//
// The environment variable TARRY_TEST_ROOT names a directory with other releases of the
// servers: see root.go.
//
// The methods fail the test on errors, so call them from its goroutine.
package servertest
