package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/secretfile"
)

// section is an array of a --config file.
type section struct {
	name    string // of the array
	entry   string // what one of its entries is
	example string // of an entry
	fields  string // of an entry
}

var (
	routesSection = section{"routes", "route", `{"queue": "order.*", "target": "https://shop.example/due"}`,
		"name, queue, target, target_file, concurrency, rate, burst, headers, timeout, secret_file, allow_private"}
	intakesSection = section{"intakes", "intake", `{"queue": "orders", "source_file": "/etc/tarry/source"}`,
		"name, queue, source, source_file, target, target_file, on_conflict, remember, timeout"}
)

// title is what each entry has.
type title struct {
	Name  string `json:"name,omitempty"`
	Queue string `json:"queue"`
}

func (t title) of() string { return cmp.Or(t.Name, t.Queue) }

// entry is an entry as written in the file. It describes a T.
type entry[T any] interface {
	of() string
	made() (T, error)
}

// list is a list of T.
type list[L, T any] interface {
	~[]T
	Complete() (L, error)
	Check() error
}

// readGiven reads a section of the --config file, which must be given.
func readGiven[L list[L, T], E entry[T], T any](p *Program, s *section) (made L, given []E, err error) {
	file, err := p.settings.given(s)
	if err != nil {
		return nil, nil, err
	}
	return read[L, E](file, s)
}

// read reads and checks what the entries of a section describe, and fills in defaults. It
// returns them as written too.
func read[L list[L, T], E entry[T], T any](c *configFile, s *section) (made L, given []E, err error) {
	var all []jsontext.Value
	if raw, has := c.sections[s.name]; has {
		if err := json.Unmarshal(raw, &all); err != nil || raw.Kind() != '[' {
			return nil, nil, usagef(fmt.Sprintf("as in %q: [%s]", s.name, s.example), "%s: %s is not an array of %[2]s", c.path, s.name)
		}
	}
	given, made = make([]E, len(all)), make(L, len(all))
	for i, v := range all {
		err := json.Unmarshal(v, &given[i], json.RejectUnknownMembers(true))
		if v.Kind() == 'n' {
			err = errors.New("it is null")
		}
		if err != nil {
			return nil, nil, c.wrong(s, i, given[i].of(), s.mistake(err))
		}
	}
	for i := range given {
		if made[i], err = given[i].made(); err != nil {
			return nil, nil, c.wrong(s, i, given[i].of(), err)
		}
	}
	if made, err = made.Complete(); err == nil {
		err = made.Check()
	}
	if err != nil {
		return nil, nil, c.refused(err)
	}
	return made, given, nil
}

// wrong adds the file and an entry to an error.
func (c *configFile) wrong(s *section, i int, title string, err error) error {
	name := fmt.Sprintf("%s %d", s.entry, i+1)
	if title != "" {
		name += " (" + title + ")"
	}
	return usagef("", "%s: %s: %v", c.path, name, err)
}

// refused makes an error of what the entries are for a mistake in the file.
func (c *configFile) refused(err error) error {
	return usagef("", "%s: %s", c.path, strings.TrimPrefix(err.Error(), "tarry: "))
}

// mistake names the field of an entry that is wrong.
func (s *section) mistake(err error) error {
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err
	}
	field := strings.ReplaceAll(strings.TrimPrefix(string(e.JSONPointer), "/"), "/", ".")
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return usagef("known are "+s.fields, "unknown field %q", field)
	case field == "":
		return usagef("as in "+s.example, "it is a JSON %s and not an object", kindName(e.JSONKind))
	case e.Err != nil:
		return fmt.Errorf("%s: %w", field, e.Err)
	}
	return fmt.Errorf("%s cannot be a JSON %s", field, kindName(e.JSONKind))
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 't', 'f':
		return "boolean"
	}
	return k.String()
}

type jsonDuration time.Duration

// UnmarshalText parses a duration such as 1500ms, 30m or 7d.
func (d *jsonDuration) UnmarshalText(b []byte) error {
	v, err := parseDuration(string(b))
	*d = jsonDuration(v)
	return err
}

// MarshalText writes it as UnmarshalText reads it.
func (d jsonDuration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d jsonDuration) String() string { return tarry.FormatDuration(time.Duration(d)) }

func (d *jsonDuration) value() time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(*d)
}

// fileURL returns a URL that is given itself or by a file that holds it: one of the two.
func fileURL(field, given, file string) (string, error) {
	switch {
	case given == "" && file == "":
		return "", fmt.Errorf("it has neither %s nor %[1]s_file (give one of them)", field)
	case given != "" && file != "":
		return "", fmt.Errorf("both %s and %[1]s_file are given (give one of them)", field)
	case file == "":
		return given, nil
	}
	lines, err := readLines(field+"_file", file)
	if err != nil {
		return "", err
	}
	if len(lines) > 1 {
		return "", fmt.Errorf("%s_file: %s holds %d lines (it should hold one URL)", field, file, len(lines))
	}
	return lines[0], nil
}

// timeoutOf returns a timeout, 0 for the default of 10 s.
func timeoutOf(d *jsonDuration) (time.Duration, error) {
	if d != nil && *d == 0 {
		return 0, errors.New("the timeout is 0 (leave it out for 10s)")
	}
	return d.value(), nil
}

// changeConfig changes the entries of a section of a --config file. All else stays as it is,
// and a file that would be wrong is not written.
func changeConfig(path string, s *section, change func([]jsontext.Value) []jsontext.Value) error {
	var wrong error
	err := secretfile.Replace(path, func(next *os.File) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if data, err = changeSection(data, s.name, change); err != nil {
			return err
		}
		file, err := parseConfig(path, data)
		if err == nil {
			_, err = file.readFlows()
		}
		if wrong = err; err != nil {
			return err
		}
		_, err = next.Write(data)
		return err
	})
	if wrong != nil {
		return wrong
	}
	if err != nil {
		return failedf(err, "", "the file stays as it was: %v", err)
	}
	return nil
}

// changeSection returns the JSON of a file with the entries of a section changed.
func changeSection(data []byte, name string, change func([]jsontext.Value) []jsontext.Value) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	end := dec.InputOffset() // of the last member
	for dec.PeekKind() == '"' {
		member, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		found := member.String() == name // the token is good until the next read
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		end = dec.InputOffset()
		if found {
			var all []jsontext.Value
			if err := json.Unmarshal(value, &all); err != nil {
				return nil, err
			}
			return splice(data, end-int64(len(value)), end, array(change(all))), nil
		}
	}
	text := "\n  \"" + name + "\": " + array(change(nil))
	if data[end-1] == '{' {
		text += "\n"
	} else {
		text = "," + text
	}
	return splice(data, end, end, text), nil
}

// array returns entries as an array, each on lines of its own.
func array(all []jsontext.Value) string {
	if len(all) == 0 {
		return "[]"
	}
	lines := make([]string, len(all))
	for i, v := range all {
		lines[i] = "    " + string(v)
	}
	return "[\n" + strings.Join(lines, ",\n") + "\n  ]"
}

func splice(data []byte, from, to int64, text string) []byte {
	return append(append(append([]byte{}, data[:from]...), text...), data[to:]...)
}
