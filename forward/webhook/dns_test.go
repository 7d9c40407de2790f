package webhook

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// zone is what a DNS server tells of names: of each the addresses of one answer after the
// other, the last repeating.
type zone map[string][][]string

// resolver asks a DNS server of the test's own. Names that are not in the zone it does not
// know.
func resolver(t *testing.T, z zone) *net.Resolver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { answerNames(conn, z) })
	t.Cleanup(func() { conn.Close(); served.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func answerNames(conn net.PacketConn, z zone) {
	asked := make(map[string]int) // by name and type
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		name, question := readQuestion(buf[:n])
		kind := binary.BigEndian.Uint16(question[len(question)-4:])
		var found []netip.Addr
		answers, known := z[name]
		if known {
			key := name + string(rune(kind))
			for _, s := range answers[min(asked[key], len(answers)-1)] {
				if a := netip.MustParseAddr(s); a.Is4() == (kind == 1) {
					found = append(found, a)
				}
			}
			asked[key]++
		}
		_, _ = conn.WriteTo(dnsAnswer(buf[:2], question, kind, found, known), from)
	}
}

// readQuestion returns the name asked for and the question's bytes.
func readQuestion(b []byte) (name string, question []byte) {
	i := 12
	for b[i] != 0 {
		name += string(b[i+1:i+1+int(b[i])]) + "."
		i += 1 + int(b[i])
	}
	return strings.ToLower(strings.TrimSuffix(name, ".")), b[12 : i+5]
}

func dnsAnswer(id, question []byte, kind uint16, found []netip.Addr, known bool) []byte {
	flags := uint16(0x8180) // an answer, recursion available
	if !known {
		flags |= 3 // no such name
	}
	b := append([]byte(nil), id...)
	for _, v := range []uint16{flags, 1, uint16(len(found)), 0, 0} {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	b = append(b, question...)
	for _, a := range found {
		b = append(b, 0xc0, 12) // the name of the question
		for _, v := range []uint16{kind, 1, 0, 0, uint16(len(a.AsSlice()))} {
			b = binary.BigEndian.AppendUint16(b, v)
		}
		b = append(b, a.AsSlice()...)
	}
	return b
}
