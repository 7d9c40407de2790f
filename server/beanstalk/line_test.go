package beanstalk

import (
	"bytes"
	"context"
	"testing"
)

func newInput() *input {
	in := new(input)
	in.init(context.Background(), &memory{most: maxBuffered})
	return in
}

// lines returns what an input finds in data that comes in pieces of n bytes: lines, and "!" for
// each that was too long.
func lines(data []byte, n int) (all []string) {
	in := newInput()
	for {
		line, got := in.next()
		switch got {
		case whole:
			all = append(all, "="+string(line))
			continue
		case tooLong:
			all = append(all, "!")
			continue
		}
		if len(data) == 0 {
			return all
		}
		k := copy(in.space(maxLine), data[:min(n, len(data))])
		in.add(k)
		data = data[k:]
	}
}

func TestLines(t *testing.T) {
	x := func(n int) string { return string(bytes.Repeat([]byte("x"), n)) }
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a\r\n\r\nb\r\nc", []string{"=a", "=", "=b"}},
		{"a\nb\r\n", []string{"=a\nb"}},
		{"a\rb\r\nc\r\n", nil}, // until 224 bytes have come
		{"a\rb\r\n" + x(219) + "\r\nc\r\n", []string{"!", "=c"}},
		{x(222) + "\r\n", []string{"=" + x(222)}},
		{x(223) + "\r\nc\r\n", []string{"!"}}, // the CR is dropped with the first 224 bytes
		{x(224) + "\r\nc\r\n", []string{"!", "=c"}},
		{x(1000) + "\r\nc\r\n", []string{"!", "=c"}},
	} {
		for _, n := range []int{1, 7, 224, 5000} {
			if got := lines([]byte(c.in), n); !equal(got, c.want) {
				t.Errorf("%.20q in pieces of %d: %.60q, want %.60q", c.in, n, got, c.want)
			}
		}
	}
}

func equal(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// FuzzLine: how the bytes come makes no difference, and nothing is found that was not sent.
func FuzzLine(f *testing.F) {
	f.Add([]byte("put 0 0 60 1\r\na\r\n"), uint16(3))
	f.Add(append(bytes.Repeat([]byte("y"), 223), "\r\nquit\r\n"...), uint16(224))
	f.Fuzz(func(t *testing.T, data []byte, n uint16) {
		at := lines(data, int(n)+1)
		if once := lines(data, len(data)+1); !equal(once, at) {
			t.Errorf("at once %q, in pieces of %d %q", once, int(n)+1, at)
		}
		size := 0
		for _, l := range at {
			if size += len(l); len(l)-1 > maxLine-2 || !bytes.Contains(data, []byte(l[1:])) {
				t.Errorf("found %q in %q", l, data)
			}
		}
		if size > len(data) {
			t.Errorf("%d bytes of lines in %d", size, len(data))
		}
	})
}

// TestInputGrowsAndShrinks: a buffer grows with what comes, and not with what is announced; it
// is given back when what is left is small, and the memory is bounded.
func TestInputGrowsAndShrinks(t *testing.T) {
	in := newInput()
	body := bytes.Repeat([]byte("0123456789"), 30<<10)
	for rest, need := body, len(body); len(rest) > 0; {
		p := in.space(need)
		if got, there := len(in.buf), in.buffered(); got > max(smallInput, bigInput, 2*there+2) {
			t.Fatalf("a buffer of %d for %d bytes", got, there)
		}
		n := copy(p, rest[:min(len(rest), 5000)])
		in.add(n)
		rest = rest[n:]
	}
	if got := in.take(len(body)); !bytes.Equal(got, body) {
		t.Error("it is not what was sent")
	}
	in.space(maxLine)
	if used := in.memory.used.Load(); !in.isSmall() || used != 0 {
		t.Errorf("a buffer of %d stays, %d bytes are held", len(in.buf), used)
	}
	in.memory.most = bigInput
	for rest, need := body, len(body); ; {
		p := in.space(need)
		if p == nil {
			break
		}
		n := copy(p, rest)
		in.add(n)
		if rest = rest[n:]; len(rest) == 0 {
			t.Fatal("it grew beyond the memory")
		}
	}
	if in.drop(); in.memory.used.Load() != 0 {
		t.Errorf("%d bytes stay held", in.memory.used.Load())
	}
}
