package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
)

// A journal is the file replay.log of a store. It is only ever appended to, and
// synced after each line. A line is a checksum, a space, a JSON object and a
// newline; the first holds a header, all others a record. A line that a crash cut
// short is the last one, and as good as never written.
type journal struct {
	file *os.File
}

// A header ties a store to one file of orders.
type header struct {
	Format int    `json:"format"`
	SHA256 string `json:"sha256"`
	Orders int    `json:"orders"`
}

const journalFormat = 1

// A record is one step of a replay, whole or not at all.
type record struct {
	// Events is how many events of the timeline have been applied so far.
	Events int `json:"events"`
	// The ids of the orders whose jobs ended since the record before.
	Handled   [jobs][]string `json:"handled"`
	CalledOff [jobs][]string `json:"called_off"`
}

// ended returns how many outcomes the record holds.
func (r *record) ended() (n int) {
	for j := range jobs {
		n += len(r.Handled[j]) + len(r.CalledOff[j])
	}
	return n
}

// errOtherFile is what a store answers that belongs to another file of orders.
var errOtherFile = errors.New("this store belongs to the replay of another file; name another --store, or remove it")

// openJournal opens the journal at path, or makes it, and returns the records in
// it. The caller must hold the store.
func openJournal(path string, want header) (*journal, []record, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	j := &journal{f}
	records, err := j.load(path, want)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return j, records, nil
}

// load reads the file and leaves it ready for the next line.
func (j *journal) load(path string, want header) ([]record, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	good, records := 0, []record(nil)
	for n := 0; good < len(content); n++ {
		end := bytes.IndexByte(content[good:], '\n')
		last := end < 0 || good+end+1 == len(content)
		var body []byte
		if end >= 0 {
			body = unseal(content[good : good+end])
		}
		switch {
		case body == nil && n == 0 && end >= 0:
			return nil, fmt.Errorf("%s is not the log of a replay; name another --store", path)
		case body == nil && !last:
			return nil, fmt.Errorf("%s is damaged in line %d; remove the store and replay again", path, n+1)
		case body == nil:
			return records, j.cut(path, good, want)
		case n == 0:
			err = checkHeader(body, want)
		default:
			var r record
			err = json.Unmarshal(body, &r)
			records = append(records, r)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n+1, err)
		}
		good += end + 1
	}
	return records, j.cut(path, good, want)
}

// cut drops what a crash left of the last line. A file without any line gets its
// header.
func (j *journal) cut(path string, size int, want header) error {
	if err := j.file.Truncate(int64(size)); err != nil {
		return err
	}
	if _, err := j.file.Seek(int64(size), 0); err != nil {
		return err
	}
	if size > 0 {
		return nil
	}
	if err := j.append(want); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func checkHeader(body []byte, want header) error {
	var h header
	if err := json.Unmarshal(body, &h); err != nil {
		return err
	}
	switch {
	case h.Format != want.Format:
		return fmt.Errorf("the log has format %d, and this program knows %d; name another --store", h.Format, want.Format)
	case h != want:
		return errOtherFile
	}
	return nil
}

// append writes one line and returns when it is on the disk.
func (j *journal) append(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(seal(body)); err != nil {
		return err
	}
	return j.file.Sync()
}

func (j *journal) close() error { return j.file.Close() }

const checksumLen = 8 // hexadecimal digits

func seal(body []byte) []byte {
	line := fmt.Appendf(make([]byte, 0, len(body)+checksumLen+2), "%08x ", crc32.ChecksumIEEE(body))
	return append(append(line, body...), '\n')
}

// unseal returns the body of a line, or nil if the line is not what seal wrote.
func unseal(line []byte) []byte {
	if len(line) <= checksumLen || line[checksumLen] != ' ' {
		return nil
	}
	sum, err := strconv.ParseUint(string(line[:checksumLen]), 16, 32)
	body := line[checksumLen+1:]
	if err != nil || crc32.ChecksumIEEE(body) != uint32(sum) {
		return nil
	}
	return body
}

// syncDir makes a new file's name as durable as its content.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
