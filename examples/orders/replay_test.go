package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const smallFile = "testdata/orders.csv"

// realFile returns the path of a big file of real orders, which is not part of
// the repository.
func realFile(t *testing.T) string {
	t.Helper()
	name := os.Getenv("TARRY_ORDERS_CSV")
	if name == "" {
		name = "../../../shared/data/orders.csv"
	}
	if _, err := os.Stat(name); err != nil {
		t.Skipf("SKIPPED: no file of real orders: %v; name one with TARRY_ORDERS_CSV", err)
	}
	return name
}

// runJSON runs the program and returns what it prints with --json.
func runJSON(t *testing.T, args ...string) report {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := &program{stdout: &stdout, stderr: &stderr}
	if code := p.run(t.Context(), append(args, "--json")); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	var rep report
	dec := json.NewDecoder(&stdout)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rep); err != nil {
		t.Fatal(err)
	}
	if dec.More() {
		t.Error("there is more than one object on standard output")
	}
	return rep
}

// checkReport compares all but the seconds.
func checkReport(t *testing.T, got, want report) {
	t.Helper()
	got.Seconds, want.Seconds = 0, 0
	if got != want {
		t.Errorf("the replay counted\n %+v\nand the file says\n %+v", got, want)
	}
}

func TestSmallFile(t *testing.T) {
	_, want := plainPass(t, smallFile)
	checkReport(t, runJSON(t, "--file", smallFile), want)
}

// TestSmallFileHoldsEachCase spells out what the small file says of each order,
// so that neither the replay nor the plain pass can be wrong about a rule unseen.
func TestSmallFileHoldsEachCase(t *testing.T) {
	want := map[string]plainOutcome{
		"paid-soon":                         {calledOff: true, given: true},
		"never-paid":                        {cancelled: true},
		"paid-late":                         {cancelled: true, automatic: true},
		"paid-at-once":                      {calledOff: true, automatic: true},
		"paid-at-the-last-millisecond":      {calledOff: true, given: true},
		"paid-a-millisecond-late":           {cancelled: true, automatic: true},
		"paid-less-than-a-millisecond-late": {calledOff: true, given: true},
		"paid-before-the-purchase":          {calledOff: true, given: true},
		"answered-at-once":                  {calledOff: true, given: true},
		"paid-without-purchase":             {given: true},
		"answered-without-request":          {calledOff: true},
		"nothing happened, ever":            {},
		`in the far "future"`:               {cancelled: true, automatic: true},
	}
	plain, _ := plainPass(t, smallFile)
	dir := t.TempDir()
	runJSON(t, "--file", smallFile, "--store", dir)
	replayed := storedOutcomes(t, dir)
	for id, w := range want {
		if plain[id] != w {
			t.Errorf("%s: the plain pass says %+v, want %+v", id, plain[id], w)
		}
		if replayed[id] != w {
			t.Errorf("%s: the replay says %+v, want %+v", id, replayed[id], w)
		}
	}
	if len(plain) != len(want) {
		t.Errorf("the file has %d orders, want %d", len(plain), len(want))
	}
}

// storedOutcomes reads the outcomes of each order from the log of a store.
func storedOutcomes(t *testing.T, dir string) map[string]plainOutcome {
	t.Helper()
	in, err := readFile(smallFile)
	if err != nil {
		t.Fatal(err)
	}
	j, records, err := openJournal(filepath.Join(dir, journalName),
		header{Format: journalFormat, SHA256: in.sum, Orders: len(in.orders)})
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	got := make(map[string]plainOutcome)
	set := func(ids []string, change func(*plainOutcome)) {
		for _, id := range ids {
			o := got[id]
			change(&o)
			got[id] = o
		}
	}
	for _, r := range records {
		set(r.Handled[cancelUnpaid], func(o *plainOutcome) { o.cancelled = true })
		set(r.CalledOff[cancelUnpaid], func(o *plainOutcome) { o.calledOff = true })
		set(r.Handled[rateReview], func(o *plainOutcome) { o.automatic = true })
		set(r.CalledOff[rateReview], func(o *plainOutcome) { o.given = true })
	}
	return got
}

func TestRealFile(t *testing.T) {
	t.Parallel()
	name := realFile(t)
	_, want := plainPass(t, name)
	dir := t.TempDir()
	got := runJSON(t, "--file", name, "--store", dir)
	checkReport(t, got, want)
	t.Logf("%+v", got)
	checkReport(t, runJSON(t, "--file", name, "--store", dir), want) // nothing left to do
}

func TestTable(t *testing.T) {
	var stdout, stderr bytes.Buffer
	p := &program{stdout: &stdout, stderr: &stderr}
	if code := p.run(t.Context(), []string{"--file", smallFile}); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	_, want := plainPass(t, smallFile)
	want.Seconds = 0
	var table bytes.Buffer
	if err := want.table(&table); err != nil {
		t.Fatal(err)
	}
	body, _, _ := strings.Cut(table.String(), "0.000")
	if !strings.HasPrefix(stdout.String(), strings.TrimRight(body, " ")) {
		t.Errorf("got\n%s\nwant\n%s", &stdout, &table)
	}
}

func TestTemporaryStoreIsRemoved(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	runJSON(t, "--file", smallFile)
	err := filepath.WalkDir(tmp, func(path string, _ fs.DirEntry, err error) error {
		if path != tmp {
			t.Errorf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
