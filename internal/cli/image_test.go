package cli

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/internal/nettest"
)

// What the image runs serves, by its own settings, and its health check tells whether it
// does.
func TestImageServes(t *testing.T) {
	file := strings.ReplaceAll(readOperations(t, "Dockerfile"), "\\\n", " ")
	last := file[strings.LastIndex(file, "\nFROM "):]
	line := func(instruction string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)^`+instruction+` (.*)$`).FindAllStringSubmatch(last, -1)
		if len(m) != 1 {
			t.Fatalf("the image has %d lines %s", len(m), instruction)
		}
		return m[0][1]
	}
	words := func(list string) (all []string) {
		t.Helper()
		if err := json.Unmarshal([]byte(list), &all); err != nil {
			t.Fatalf("%s: %v", list, err)
		}
		return all
	}
	port, dir := strconv.Itoa(nettest.FreePort(t)), t.TempDir()
	exposed, volume := line("EXPOSE"), line("VOLUME")
	env := strings.Fields(line("ENV"))
	for i := range env {
		env[i] = strings.NewReplacer(":"+exposed, ":"+port, volume, dir).Replace(env[i])
	}
	if all := strings.Join(env, " "); !strings.Contains(all, "TARRY_HTTP=:"+port) || !strings.Contains(all, "TARRY_STORE=disk:"+dir) {
		t.Fatalf("it listens not on the port that it exposes, or stores not in its volume: %s", all)
	}
	binary := words(line("ENTRYPOINT"))
	_, check, _ := strings.Cut(line("HEALTHCHECK"), "CMD ")
	probe := words(check)
	if len(binary) != 1 || probe[0] != binary[0] || !strings.Contains(last, "\nCOPY --from=build /out/tarry "+binary[0]+"\n") {
		t.Errorf("%q is not the binary that the image holds, as %q is", probe, binary)
	}
	healthy := step{args: strings.Join(probe[1:], " "), stdout: "ready\n"}
	inside := world{env: append([]string{"TARRY_SERVER=http://127.0.0.1:" + port}, env...)}
	run1(t, inside, step{args: healthy.args, code: exitUnavailable, stderr: `tarry: .*\n`})
	refused := world{env: env}.start(t, words(line("CMD"))...)
	if code := refused.wait(t); code != exitUsage {
		t.Errorf("without tokens it ended with %d:\n%s", code, refused.stderr)
	}
	served := world{env: append([]string{"TARRY_INSECURE=true"}, env...)}.start(t, words(line("CMD"))...)
	served.stdout.await(t, `listens on http://127.0.0.1:`+port+`\ndashboard: .*\ndata: `+regexp.QuoteMeta(dir))
	run1(t, inside, healthy)
}
