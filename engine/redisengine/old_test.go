package redisengine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// TestOpenOldRedis is the one test against a server that only pretends to be Redis:
// old versions cannot be installed beside the new one.
func TestOpenOldRedis(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"6.2.14", "5.0.14"} {
		addr := oldRedis(t, version)
		refused(t, "redis://:hunter2@"+addr, engine.ErrInvalid, "version "+version, "7.0 or later")
	}
}

// oldRedis listens until the test's end and answers to what opening an engine asks as
// that version does.
func oldRedis(t *testing.T, version string) (addr string) {
	return servertest.Listen(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			cmd, err := readCommand(r)
			if err != nil {
				return
			}
			if _, err := io.WriteString(c, oldAnswer(version, cmd)); err != nil {
				return
			}
		}
	})
}

func oldAnswer(version string, cmd []string) string {
	old := version < "6"
	switch name := strings.ToUpper(cmd[0]); {
	case name == "HELLO" && old:
		// It repeats what it was sent, the password as well.
		return fmt.Sprintf("-ERR unknown command `HELLO`, with args beginning with: `%s`, \r\n", strings.Join(cmd[1:], "`, `"))
	case name == "HELLO":
		return "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n" + bulk(version) + "$5\r\nproto\r\n:3\r\n"
	case name == "INFO":
		return bulk("# Server\r\nredis_version:" + version + "\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n")
	case name == "CLIENT" && strings.EqualFold(cmd[1], "SETINFO"):
		return "-ERR Unknown subcommand or wrong number of arguments for 'SETINFO'. Try CLIENT HELP\r\n"
	case name == "CLIENT" || name == "AUTH":
		return "+OK\r\n"
	case name == "PING":
		return "+PONG\r\n"
	}
	return "-ERR unknown command `" + cmd[0] + "`\r\n"
}

func bulk(s string) string { return "$" + strconv.Itoa(len(s)) + "\r\n" + s + "\r\n" }

// readCommand reads a command as clients send it, an array of strings.
func readCommand(r *bufio.Reader) ([]string, error) {
	number := func(sign byte) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if line[0] != sign {
			return 0, fmt.Errorf("%q does not begin with %c", line, sign)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number('*')
	if err != nil {
		return nil, err
	}
	cmd := make([]string, n)
	for i := range cmd {
		size, err := number('$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		cmd[i] = string(b[:size])
	}
	return cmd, nil
}
