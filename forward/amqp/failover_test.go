package amqp_test

import (
	"net"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/internal/targettest"
)

// A machine that is gone refuses nothing, and says nothing.
func TestABrokerThatIsSilentDoesNotHideTheNext(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	declare(t, channelTo(t, at), "orders", nil)
	l, err := net.Listen("tcp", "127.0.0.1:0") // whose connections nobody takes
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, first, _ := strings.Cut(at, "@")
	host, vhost, _ := strings.Cut(first, "/")
	target := targettest.Open(t, "amqp://"+l.Addr().String()+","+host+"/"+vhost, &forward.Options{Timeout: 4e9, Logger: quiet.Logger})
	targettest.Recovers(t, target, message(6, "x")) // once two seconds are enough for the next
}
