package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/internal/secretfile"
)

// A setting is a flag that may also come from the environment or the --config file. The flag
// goes before TARRY_NAME, that before "name" in the file, and that before the default. Only
// the names in allSettings are settings; other flags belong to one call. So TARRY_KEY,
// TARRY_ID and the like, which work sets for its commands, do not become their flags.
//
// A secret setting has a twin NAME-file, which names a file that holds the value.

// level says where the value of a setting came from. A greater one is closer to the user.
type level int

const (
	fromDefault level = iota
	fromFile
	fromEnv
	fromFlag
)

// allSettings are the names that a --config file may hold, for any command. A flag with such a
// name is a setting.
var allSettings = func() []string {
	all := []string{
		"server", "server-file", "store", "store-file", "token", "token-file", "timeout", "json",
		"http", "host", "tokens", "insecure", "audit-log", "tls-cert", "tls-key", "tls-client-ca", "max-body", "max-buffered", "max-connections", "max-viewers", "trends", "drain", "ui-read-only", "ui-secure", "backup-dir", "history", "history-max", "beanstalk", "beanstalk-max-job", "beanstalk-as", "concurrency",
	}
	for _, o := range diskengine.Options() {
		all = append(all, diskFlag(o.Name))
	}
	return all
}()

// ofQueues marks the flags for settings of a queue.
const ofQueues = "of a queue"

func isSetting(f *pflag.Flag) bool {
	return slices.Contains(allSettings, f.Name) && f.Annotations[ofQueues] == nil
}

type settings struct {
	levels map[string]level
	file   configFile
}

// markSettings adds to the help of each setting the name of its variable.
func markSettings(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if isSetting(f) {
			f.Usage += " (" + envName(f.Name) + ")"
		}
	})
	for _, below := range cmd.Commands() {
		markSettings(below)
	}
}

func envName(flag string) string {
	return "TARRY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// where names the source of a setting.
func (s *settings) where(flag string) string {
	switch s.levels[flag] {
	case fromEnv:
		return envName(flag)
	case fromFile:
		return s.file.path + ": " + fileName(flag)
	}
	return "--" + flag
}

func fileName(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// load sets the settings of cmd that are not given as flags.
func (s *settings) load(p *Program, cmd *cobra.Command) error {
	s.levels = make(map[string]level)
	file, err := readConfig(configPath(p, cmd))
	if err != nil {
		return err
	}
	s.file = file
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if err != nil || !isSetting(f) {
			return
		}
		if f.Changed {
			s.levels[f.Name] = fromFlag
			if f.Name == "token" {
				err = usagef("give it by --token-file or TARRY_TOKEN", "a token on the command line can be read by others")
			}
			return
		}
		if v, ok := p.env(envName(f.Name)); ok {
			s.levels[f.Name] = fromEnv
			err = set(f, v, envName(f.Name))
		} else if v, ok := file.values[fileName(f.Name)]; ok {
			s.levels[f.Name] = fromFile
			err = set(f, v, file.path+": "+fileName(f.Name))
		}
	})
	if err != nil {
		return err
	}
	return s.readTwins(cmd)
}

func set(f *pflag.Flag, value, source string) error {
	if err := f.Value.Set(value); err != nil {
		return usagef("correct it or leave it out", "%s: %v", source, err)
	}
	return nil
}

// readTwins sets settings from their NAME-file, unless NAME itself comes from a closer level.
func (s *settings) readTwins(cmd *cobra.Command) error {
	for _, name := range []string{"server", "store", "token"} {
		twin := cmd.Flags().Lookup(name + "-file")
		if twin == nil || s.levels[name+"-file"] == fromDefault || s.levels[name+"-file"] < s.levels[name] {
			continue
		}
		if s.levels[name+"-file"] == s.levels[name] {
			return usagef("give one of them", "both %s and %s-file are given", name, name)
		}
		data, err := readTwin(name, twin.Value.String())
		if err != nil {
			return err
		}
		v := strings.TrimSpace(string(data))
		if v == "" {
			return usagef("it should hold the value of --"+name, "the file %s is empty", twin.Value)
		}
		s.levels[name] = s.levels[name+"-file"]
		if err := set(cmd.Flags().Lookup(name), v, "--"+name+"-file"); err != nil {
			return err
		}
	}
	return nil
}

// readTwin reads a NAME-file. No other user may be able to read or write the file of a token.
func readTwin(name, path string) ([]byte, error) {
	if name != "token" {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, usagef("name a file that holds the value", "--%s-file: %v", name, err)
		}
		return data, nil
	}
	data, err := secretfile.Read(path)
	switch {
	case errors.As(err, new(*fs.PathError)):
		return nil, usagef("name a file that holds the token", "--token-file: %v", err)
	case err != nil:
		return nil, usagef("", "--token-file: %v", err)
	}
	return data, nil
}

// configFile is the content of a --config file.
type configFile struct {
	path     string // "": no file
	values   map[string]string
	sections map[string]jsontext.Value // routes and intakes
}

// given returns the --config file, which has a section.
func (s *settings) given(has *section) (*configFile, error) {
	if s.file.path == "" {
		return nil, usagef("as in --config tarry.json", "no --config file is given, and the %s are in that file", has.name)
	}
	return &s.file, nil
}

// configPath returns the file that --config or TARRY_CONFIG names.
func configPath(p *Program, cmd *cobra.Command) string {
	path, _ := cmd.Flags().GetString("config")
	if path == "" {
		path, _ = p.env("TARRY_CONFIG")
	}
	return path
}

// readConfig reads a --config file. It is one JSON object of strings, numbers and booleans,
// except for its sections.
func readConfig(path string) (configFile, error) {
	if path == "" {
		return configFile{}, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return configFile{path: path}, usagef("name a JSON file with settings", "--config: %v", err)
	}
	return parseConfig(path, data)
}

// parseConfig parses the content of a --config file.
func parseConfig(path string, data []byte) (configFile, error) {
	c := configFile{path: path, values: make(map[string]string), sections: make(map[string]jsontext.Value)}
	const example = `a configuration looks like {"server": "http://127.0.0.1:8277"}`
	var object map[string]jsontext.Value
	if err := json.Unmarshal(data, &object); err != nil {
		return c, usagef(example, "%s: %s", path, malformed(data, err))
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		switch {
		case name == routesSection.name, name == intakesSection.name:
			c.sections[name] = value
			continue
		case !slices.ContainsFunc(allSettings, func(s string) bool { return fileName(s) == name }):
			return c, usagef("known are "+strings.ReplaceAll(strings.Join(allSettings, ", "), "-", "_")+", routes and intakes", "%s: unknown setting %q", path, name)
		}
		switch value.Kind() {
		case '"':
			text, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return c, usagef(example, "%s: %s: %v", path, name, err)
			}
			c.values[name] = string(text)
		case '0', 't', 'f':
			c.values[name] = string(value)
		default:
			return c, usagef(example, "%s: %s is not a string, number or boolean", path, name)
		}
	}
	return c, nil
}

// malformed says where the JSON is wrong.
func malformed(data []byte, err error) string {
	e, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return "it is not an object"
	}
	line := 1 + bytes.Count(data[:min(int(e.ByteOffset), len(data))], []byte("\n"))
	what := fmt.Sprint(e.Err)
	if e.Err == io.ErrUnexpectedEOF {
		what = "it ends too early"
	}
	if e.JSONPointer != "" {
		what += " at " + string(e.JSONPointer)
	}
	return fmt.Sprintf("line %d: %s", line, what)
}
