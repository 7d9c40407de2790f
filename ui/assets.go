package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// dist is built by make ui.
//
//go:embed dist
var dist embed.FS

// asset is a file to serve, plain and compressed.
type asset struct {
	contentType string
	etag        string
	plain       []byte
	gzipped     []byte
}

// files are the files of dist and their types. The page names the other files by a hash of
// their content, so browsers may cache them forever.
var files = []struct{ file, kind string }{
	{"app.js", "text/javascript; charset=utf-8"},
	{"app.css", "text/css; charset=utf-8"},
	{"icon.svg", "image/svg+xml"},
	{"licenses.txt", "text/plain; charset=utf-8"},
}

// index is the path of the page.
const index = ""

// load reads and compresses dist when the first Handler is made. It returns the files by path.
var load = sync.OnceValue(func() map[string]*asset {
	all := make(map[string]*asset)
	page, err := dist.ReadFile("dist/index.html")
	if err != nil {
		panic(err) // it is part of the program
	}
	for _, k := range files {
		b, err := dist.ReadFile("dist/" + k.file)
		if err != nil {
			panic(err)
		}
		a := newAsset(k.kind, b)
		name, ext, _ := strings.Cut(k.file, ".")
		path := "assets/" + name + "-" + a.etag[1:13] + "." + ext
		all[path] = a
		page = bytes.ReplaceAll(page, []byte("./assets/"+k.file), []byte("./"+path))
	}
	all[index] = newAsset("text/html; charset=utf-8", page)
	return all
})

func newAsset(kind string, plain []byte) *asset {
	hash := sha256.Sum256(plain)
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is a good one
	_, _ = w.Write(plain)                                      // a buffer takes all
	_ = w.Close()
	return &asset{contentType: kind, etag: strconv.Quote(hex.EncodeToString(hash[:12])), plain: plain, gzipped: packed.Bytes()}
}

// policy lets the page load only its own files: no inline script or style, no requests to
// other hosts, no frames.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// serve answers with a file.
func (a *asset) serve(w http.ResponseWriter, r *http.Request, forever bool) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if forever {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body, etag := a.plain, a.etag
	if accepts(r, "gzip") {
		body, etag = a.gzipped, strings.TrimSuffix(a.etag, `"`)+`-gz"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", etag)
	h.Set("Content-Type", a.contentType)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// accepts reports whether the client accepts an encoding.
func accepts(r *http.Request, coding string) bool {
	for _, line := range r.Header["Accept-Encoding"] {
		for one := range strings.SplitSeq(line, ",") {
			name, weight, weighed := strings.Cut(strings.TrimSpace(one), ";")
			if !strings.EqualFold(strings.TrimSpace(name), coding) {
				continue
			}
			value, _ := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			q, err := strconv.ParseFloat(value, 64)
			return !weighed || (err == nil && q > 0)
		}
	}
	return false
}
