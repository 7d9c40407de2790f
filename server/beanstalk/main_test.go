package beanstalk_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/server/beanstalk"
)

// serveDir names, in the environment, the directory whose disk store this test binary serves until it is
// killed. It writes its address first.
const serveDir = "TARRY_TEST_BEANSTALK_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDir); dir != "" {
		fmt.Fprintln(os.Stderr, serveUntilKilled(dir))
		os.Exit(1)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil { // most of the tests wait for times to end
		panic(err)
	}
	leaktest.Main(pgtest.Main(m))
}

func serveUntilKilled(dir string) error {
	c, err := tarry.Open(context.Background(), "disk:"+dir, nil)
	if err != nil {
		return err
	}
	s, err := beanstalk.New(c, nil)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	return s.Serve(context.Background(), ln)
}
