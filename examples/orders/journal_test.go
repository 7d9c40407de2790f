package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

func writeJournal(t *testing.T, path string, h header, records ...record) {
	t.Helper()
	j, _, err := openJournal(path, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := j.append(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
}

func testRecords() []record {
	var a, b record
	a.Events, b.Events = 7, 12
	a.Handled[cancelUnpaid] = []string{"a", "b\nc"}
	a.CalledOff[rateReview] = []string{`"d"`}
	b.CalledOff[cancelUnpaid] = []string{"e"}
	return []record{a, b}
}

// TestJournalCutAnywhere cuts the log at every byte: the whole lines before the
// cut count, and the log goes on from there.
func TestJournalCutAnywhere(t *testing.T) {
	h := header{Format: journalFormat, SHA256: "00", Orders: 3}
	path := filepath.Join(t.TempDir(), journalName)
	records := testRecords()
	writeJournal(t, path, h, records...)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		lines := 0
		for _, c := range whole[:cut] {
			if c == '\n' {
				lines++
			}
		}
		want := records[:max(lines-1, 0)]
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		writeJournal(t, path, h, record{Events: 99})
		j, got, err := openJournal(path, h)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		j.close()
		if len(got) != len(want)+1 || len(want) > 0 && !reflect.DeepEqual(got[:len(want)], want) || got[len(want)].Events != 99 {
			t.Fatalf("cut at %d: got %+v, want %+v and one more", cut, got, want)
		}
	}
}

func TestJournalRefuses(t *testing.T) {
	h := header{Format: journalFormat, SHA256: "00", Orders: 3}
	path := filepath.Join(t.TempDir(), journalName)
	writeJournal(t, path, h, testRecords()...)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := openJournal(path, header{Format: journalFormat, SHA256: "01", Orders: 3}); !errors.Is(err, errOtherFile) {
		t.Errorf("another file: %v, want %v", err, errOtherFile)
	}
	if _, _, err := openJournal(path, header{Format: journalFormat + 1, SHA256: "00", Orders: 3}); err == nil {
		t.Error("another format: no error")
	}
	for i := range len(whole) - 1 - len(seal([]byte(`{"events":12,"handled":[null,null],"called_off":[["e"],null]}`))) {
		if whole[i] == '\n' {
			continue
		}
		damaged := slices.Clone(whole)
		damaged[i] ^= 0x01
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := openJournal(path, h); err == nil {
			t.Errorf("damaged at byte %d: no error", i)
		}
		if now, _ := os.ReadFile(path); string(now) != string(damaged) {
			t.Errorf("damaged at byte %d: the log was changed", i)
		}
	}
	if err := os.WriteFile(path, []byte("something else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openJournal(path, h); err == nil {
		t.Error("something else: no error")
	}
}
