package cli

import (
	"bytes"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry/internal/secretfile"
)

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
