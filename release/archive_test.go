package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry/internal/cli"
)

// packed is a file of an archive.
type packed struct {
	mode    fs.FileMode
	owner   int
	content []byte
}

func readTar(t *testing.T, r io.Reader) map[string]packed {
	t.Helper()
	files, all := make(map[string]packed), tar.NewReader(r)
	for {
		h, err := all.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(all)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = packed{h.FileInfo().Mode(), h.Uid, content}
	}
}

func readZip(t *testing.T, path string) map[string]packed {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := make(map[string]packed)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = packed{f.Mode(), 0, content}
	}
	return files
}

// unpacked returns the files of a platform's archive, without their folder.
func unpacked(t *testing.T, dir func() (string, error), platform string) map[string]packed {
	t.Helper()
	name := "tarry_VERSION_" + strings.ReplaceAll(platform, "/", "_")
	var files map[string]packed
	if strings.HasPrefix(platform, "windows/") {
		files = readZip(t, artefact(t, dir, name+".zip"))
	} else {
		f, err := os.Open(artefact(t, dir, name+".tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		files = readTar(t, z)
	}
	folder := filepath.Base(artefact(t, dir, name)) + "/"
	short := make(map[string]packed)
	for path, f := range files {
		inside, ok := strings.CutPrefix(path, folder)
		if !ok {
			t.Errorf("%s is not in %s", path, folder)
		}
		short[inside] = f
	}
	return short
}

// binaryOf returns the binary for a platform, and its path in a file of its own.
func binaryOf(t *testing.T, dir func() (string, error), platform string) (content []byte, path string) {
	t.Helper()
	name := "tarry"
	if strings.HasPrefix(platform, "windows/") {
		name = "tarry.exe"
	}
	f := unpacked(t, dir, platform)[name]
	if f.mode != 0o755 {
		t.Errorf("the mode of %s is %v", name, f.mode)
	}
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, f.content, 0o700); err != nil {
		t.Fatal(err)
	}
	return f.content, path
}

// pages are the names of the manual pages of a command and those below it.
func pages(cmd *cobra.Command) []string {
	all := []string{"man/" + strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"}
	for _, c := range cmd.Commands() {
		if c.Name() != "help" {
			all = append(all, pages(c)...)
		}
	}
	return all
}

func TestArchives(t *testing.T) {
	for _, p := range platforms() {
		want := append(pages(cli.Commands()), "LICENSE", "README.md", "completions/_tarry", "completions/tarry.bash", "completions/tarry.fish", "completions/tarry.ps1")
		if strings.HasPrefix(p, "windows/") {
			want = append(want, "tarry.exe")
		} else {
			want = append(want, "tarry")
		}
		files := unpacked(t, built, p)
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
			t.Errorf("%s has\n%q, and should have\n%q", p, got, want)
		}
		for name, f := range files {
			if strings.HasPrefix(name, "man/") && !bytes.HasPrefix(f.content, []byte(".nh\n.TH \"TARRY")) {
				t.Errorf("%s: %s is no manual page:\n%.80s", p, name, f.content)
			}
			if name != "tarry" && name != "tarry.exe" && f.mode != 0o644 || f.owner != 0 || len(f.content) == 0 {
				t.Errorf("%s: %s has mode %v, owner %d, %d bytes", p, name, f.mode, f.owner, len(f.content))
			}
		}
	}
}

// settings are how a binary was built.
func settings(info *debug.BuildInfo) map[string]string {
	all := make(map[string]string)
	for _, s := range info.Settings {
		all[s.Key] = s.Value
	}
	return all
}

func TestBinariesAreStaticAndHaveTheVersion(t *testing.T) {
	commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range platforms() {
		content, path := binaryOf(t, built, p)
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		set := settings(info)
		if got := set["GOOS"] + "/" + set["GOARCH"]; got != p || info.Main.Version != version || set["vcs.modified"] != "false" ||
			set["vcs.revision"] != strings.TrimSpace(string(commit)) || set["CGO_ENABLED"] != "0" || set["-trimpath"] != "true" {
			t.Errorf("%s: the binary is %s for %s: %v", p, info.Main.Version, got, set)
		}
		if !bytes.Contains(content, []byte("Europe/Berlin")) {
			t.Errorf("%s: the binary has no time zones", p)
		}
		if strings.HasPrefix(p, "linux/") || strings.HasPrefix(p, "freebsd/") {
			checkStatic(t, content)
		}
	}
}

func checkStatic(t *testing.T, content []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("it is not static: it has a segment %s", p.Type)
		}
	}
	if symbols, err := f.Symbols(); !errors.Is(err, elf.ErrNoSymbols) {
		t.Errorf("it is not stripped: %d symbols, %v", len(symbols), err)
	}
}

// The binary for this machine prints its version, and the completions in the archives are its own.
func TestBinaryRuns(t *testing.T) {
	if !slices.Contains(platforms(), here) {
		t.Skipf("the release has nothing for %s", here)
	}
	_, path := binaryOf(t, built, here)
	out, err := exec.CommandContext(t.Context(), path, "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "tarry version "+version+" ") {
		t.Errorf("tarry version: %s %v", out, err)
	}
	files := unpacked(t, built, here)
	for shell, file := range map[string]string{"bash": "tarry.bash", "zsh": "_tarry", "fish": "tarry.fish", "powershell": "tarry.ps1"} {
		out, err := exec.CommandContext(t.Context(), path, "completion", shell).Output()
		if err != nil || !bytes.Equal(out, files["completions/"+file].content) {
			t.Errorf("completions/%s is not what tarry completion %s prints: %v", file, shell, err)
		}
	}
}

// The bill of materials names the modules that are in the binary, and no others.
func TestBillOfMaterials(t *testing.T) {
	for _, p := range platforms() {
		_, path := binaryOf(t, built, p)
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"std@" + info.GoVersion}
		for _, m := range info.Deps {
			want = append(want, m.Path+"@"+m.Version)
		}
		content, err := os.ReadFile(artefact(t, built, "tarry_VERSION_"+strings.ReplaceAll(p, "/", "_")+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		var bom struct {
			Metadata struct {
				Component struct{ Name, Version string }
			}
			Components []struct{ Name, Version string }
		}
		if err := json.Unmarshal(content, &bom); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range bom.Components {
			got = append(got, c.Name+"@"+c.Version)
		}
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) || bom.Metadata.Component.Version != version {
			t.Errorf("%s %s: it names\n%q, and the binary has\n%q", p, bom.Metadata.Component.Version, got, want)
		}
	}
}
