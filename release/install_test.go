package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// go install of the version, from a module proxy that has the last commit, makes a binary that
// says the version.
func TestGoInstall(t *testing.T) {
	tarry := module.Version{Path: "github.com/tarryhq/tarry", Version: version}
	proxy := t.TempDir()
	dir := filepath.Join(proxy, tarry.Path, "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src := filepath.Join(t.TempDir(), "src")
	output(t, "git", "clone", "-q", "--no-tags", "..", src)
	if err := zip.CreateFromVCS(f, tarry, src, "HEAD", ""); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"list": version + "\n", version + ".mod": read(t, filepath.Join(src, "go.mod")), version + ".info": fmt.Sprintf("{%q:%q}", "Version", version),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goEnv := strings.Fields(output(t, "go", "env", "GOMODCACHE", "GOPROXY"))
	bin := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "install", "-trimpath", tarry.Path+"/cmd/tarry@"+version)
	// Modules have a cache of their own, for this version must not stay in that of the machine.
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "CGO_ENABLED=0", "GOFLAGS=-modcacherw", "GOMODCACHE="+t.TempDir(), "GOSUMDB=off", "GOWORK=off",
		"GOPROXY=file://"+proxy+",file://"+goEnv[0]+"/cache/download,"+goEnv[1])
	cmd.Dir = bin
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, out)
	}
	if out := output(t, filepath.Join(bin, "tarry"), "version"); !strings.HasPrefix(out, "tarry version "+version+" ") {
		t.Errorf("it says %s", out)
	}
}
