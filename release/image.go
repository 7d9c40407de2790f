package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user in the image, and owns its volume.
const nobody = 65532

// writeImage writes one index of images, as docs/operations/Dockerfile makes them.
func writeImage(file, version string, binaries []string, at time.Time) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		name, path, _ := strings.Cut(b, "=")
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return err
		}
		img, err := image(path, version, platform, at)
		if err != nil {
			return fmt.Errorf("%s: %w", b, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := l.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})); err != nil {
		return err
	}
	return writeArchive(file, dir, at)
}

func image(binary, version string, platform *v1.Platform, at time.Time) (v1.Image, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	if err := writeTar(&files, []entry{
		{"data", fs.ModeDir | 0o700, nobody, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, authorities()},
		{"tarry", 0o755, 0, content},
	}, at); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Created: v1.Time{Time: at}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint:   []string{"/tarry"},
			Cmd:          []string{"serve"},
			Env:          []string{"TARRY_STORE=disk:/data", "TARRY_HTTP=:8277"},
			User:         fmt.Sprintf("%d:%d", nobody, nobody),
			Volumes:      map[string]struct{}{"/data": {}},
			ExposedPorts: map[string]struct{}{"8277/tcp": {}},
			StopSignal:   "SIGTERM",
			Labels:       map[string]string{"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0"},
			Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/tarry", "status", "--ready"},
				Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: time.Minute},
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "release"}})
}

// authorities are the certificates that Mozilla trusts without conditions, as PEM.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to memory
		}
	}
	return b.Bytes()
}
