package cli

import "os"

// auditFile is a file to append lines to. If the path no longer names the open file, as after
// a rotation by renaming, the path is opened again. Nobody would read lines in the old file.
type auditFile struct {
	path string
	f    *os.File
}

func openAuditFile(path string) (*auditFile, error) {
	f, err := appendTo(path)
	if err != nil {
		return nil, err
	}
	return &auditFile{path, f}, nil
}

func appendTo(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// Write appends to the file that the path names now.
func (a *auditFile) Write(p []byte) (int, error) {
	if !a.current() {
		f, err := appendTo(a.path)
		if err != nil {
			return 0, err
		}
		_ = a.f.Close()
		a.f = f
	}
	return a.f.Write(p)
}

// current reports whether the path names the file that is open.
func (a *auditFile) current() bool {
	named, err := os.Stat(a.path)
	if err != nil {
		return false
	}
	open, err := a.f.Stat()
	return err == nil && os.SameFile(named, open)
}
