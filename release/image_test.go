package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// images are those in the release's image, by platform.
func images(t *testing.T) map[string]v1.Image {
	t.Helper()
	if !slices.ContainsFunc(platforms(), func(p string) bool { return strings.HasPrefix(p, "linux/") }) {
		t.Skip("the release has no image")
	}
	dir := t.TempDir()
	output(t, "tar", "-xf", artefact(t, built, "tarry_VERSION_oci.tar"), "-C", dir)
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	top, err := all.IndexManifest()
	if err != nil || len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != strings.TrimPrefix(version, "v") {
		t.Fatalf("the layout has %+v: %v", top, err)
	}
	index, err := all.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]v1.Image)
	for _, m := range manifest.Manifests {
		img, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(img); err != nil {
			t.Error(err)
		}
		found[m.Platform.String()] = img
	}
	return found
}

func TestImageIndex(t *testing.T) {
	want := slices.DeleteFunc(platforms(), func(p string) bool { return !strings.HasPrefix(p, "linux/") })
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(images(t))); !slices.Equal(got, want) {
		t.Errorf("the image is for %v, and should be for %v", got, want)
	}
}

func config(t *testing.T, img v1.Image) v1.Config {
	t.Helper()
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return file.Config
}

// The image is configured as the Dockerfile says.
func TestImageConfig(t *testing.T) {
	file := strings.ReplaceAll(read(t, "../docs/operations/Dockerfile"), "\\\n", " ")
	file = file[strings.LastIndex(file, "\nFROM scratch\n"):]
	line := func(instruction string) string {
		return regexp.MustCompile(`(?m)^` + instruction + ` (.*)$`).FindStringSubmatch(file)[1]
	}
	words := func(list string) (all []string) {
		if err := json.Unmarshal([]byte(list), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	_, check, _ := strings.Cut(line("HEALTHCHECK"), "CMD ")
	for platform, img := range images(t) {
		c := config(t, img)
		_, volume := c.Volumes[line("VOLUME")]
		_, port := c.ExposedPorts[line("EXPOSE")+"/tcp"]
		if !slices.Equal(c.Entrypoint, words(line("ENTRYPOINT"))) || !slices.Equal(c.Cmd, words(line("CMD"))) || c.User != line("USER") ||
			!slices.Equal(c.Env, strings.Fields(line("ENV"))) || !volume || len(c.Volumes) != 1 || !port || c.StopSignal != line("STOPSIGNAL") ||
			!slices.Equal(c.Healthcheck.Test[1:], words(check)) || c.Healthcheck.Test[0] != "CMD" {
			t.Errorf("%s: not as the Dockerfile has it: %+v, health check %+v", platform, c, c.Healthcheck)
		}
		if uid, _, _ := strings.Cut(c.User, ":"); uid == "0" || uid == "" {
			t.Errorf("%s: it runs as root", platform)
		}
	}
}

// layer are the files of an image.
func layer(t *testing.T, img v1.Image) map[string]packed {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers: %v", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return readTar(t, r)
}

// There is nothing in the image but the archive's binary, certificates and the volume.
func TestImageFiles(t *testing.T) {
	for platform, img := range images(t) {
		files := layer(t, img)
		want, _ := binaryOf(t, built, platform)
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, []string{"data/", "etc/ssl/certs/ca-certificates.crt", "tarry"}) {
			t.Errorf("%s: it holds %v", platform, got)
		}
		if !bytes.Equal(files["tarry"].content, want) || files["tarry"].mode != 0o755 {
			t.Errorf("%s: the binary is not the archive's, or its mode is %v", platform, files["tarry"].mode)
		}
		if data := files["data/"]; data.mode != os.ModeDir|0o700 || strconv.Itoa(data.owner) != strings.Split(config(t, img).User, ":")[0] {
			t.Errorf("%s: the volume has mode %v and belongs to %d", platform, data.mode, data.owner)
		}
		certs := files["etc/ssl/certs/ca-certificates.crt"].content
		if n := bytes.Count(certs, []byte("BEGIN CERTIFICATE")); n < 50 || !x509.NewCertPool().AppendCertsFromPEM(certs) {
			t.Errorf("%s: it trusts %d authorities", platform, n)
		}
	}
}

// The image for this machine serves from its files alone, as its user.
func TestImageServes(t *testing.T) {
	needed(t)
	img := images(t)[here]
	if img == nil {
		t.Skipf("the image is not for %s", here)
	}
	root, c := t.TempDir(), config(t, img)
	for name, f := range layer(t, img) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if f.mode.IsDir() {
			if err := os.Mkdir(path, f.mode.Perm()); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, f.content, f.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, f.owner, f.owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(strings.Split(c.User, ":")[0], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	s := service{root: root, uid: uint32(uid), gid: uint32(uid), argv: slices.Concat(c.Entrypoint, c.Cmd),
		env: append(slices.Clone(c.Env), "TARRY_HTTP="+freeAddress(t))}
	url, _ := s.start(t)
	push(t, url)
}
