package migrate

import (
	"io"
	"io/fs"
	"strings"
)

// rendered are the files of a set as its store needs them, for goose to read.
type rendered struct{ *Set }

// Open implements fs.FS.
func (r rendered) Open(name string) (fs.File, error) {
	f, err := r.files.Open(name)
	if err != nil {
		return nil, err
	}
	for _, m := range r.all {
		if m.file == name {
			return renderedFile{File: f, Reader: strings.NewReader(m.text)}, nil
		}
	}
	return f, nil // the folder
}

type renderedFile struct {
	fs.File
	io.Reader
}

// Read implements fs.File.
func (f renderedFile) Read(p []byte) (int, error) { return f.Reader.Read(p) }
