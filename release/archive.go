package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// entry is a file or folder of an archive.
type entry struct {
	name    string // with slashes
	mode    fs.FileMode
	owner   int
	content []byte
}

// writeArchive packs a folder, under its name, into a .tar.gz or .zip file.
func writeArchive(file, dir string, at time.Time) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	prefix := filepath.Base(dir)
	if strings.HasSuffix(file, ".tar") {
		prefix = ""
	}
	entries, err := tree(dir, prefix)
	if err != nil {
		return err
	}
	switch filepath.Ext(file) {
	case ".zip":
		err = writeZip(f, entries, at)
	case ".tar":
		err = writeTar(f, entries, at)
	default:
		packed, _ := gzip.NewWriterLevel(f, gzip.BestCompression)
		err = errors.Join(writeTar(packed, entries, at), packed.Close())
	}
	return errors.Join(err, f.Close())
}

// tree reads a folder, sorted by name. File modes do not depend on the umask.
func tree(dir, prefix string) (entries []entry, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		mode := fs.FileMode(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		entries = append(entries, entry{filepath.ToSlash(filepath.Join(prefix, rel)), mode, 0, content})
		return err
	})
	return entries, err
}

func writeTar(w io.Writer, entries []entry, at time.Time) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode.Perm()), Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)), ModTime: at}
		if e.mode.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(e.content); err != nil {
			return err
		}
	}
	return t.Close()
}

func writeZip(w io.Writer, entries []entry, at time.Time) error {
	z := zip.NewWriter(w)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(e.mode)
		part, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := part.Write(e.content); err != nil {
			return err
		}
	}
	return z.Close()
}
