package tarry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// links are the targets of links and pictures in Markdown.
	links = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	// fenced is code and diagrams, in which nothing is a link.
	fenced = regexp.MustCompile("(?ms)^```.*?^```")
	// heading is a line that an anchor may lead to, its text the first submatch.
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// mention is a page of docs that Go code speaks of.
	mention = regexp.MustCompile(`\bdocs/[\w./-]*\.md\b`)
)

// pages returns the path and text of each file whose name ends so.
func pages(t *testing.T, ext string) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ext:
			return nil
		}
		b, err := os.ReadFile(path)
		texts[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// anchors returns what a link may name behind # in a page, as forges make them.
func anchors(page string) map[string]bool {
	all := make(map[string]bool)
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
				return r
			}
			return -1
		}, strings.ToLower(h[1]))] = true
	}
	return all
}

func TestHouseLinksLeadSomewhere(t *testing.T) {
	md, checked := pages(t, ".md"), 0
	for path, text := range md {
		for _, link := range links.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			file, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(file, ":") { // elsewhere
				continue
			}
			checked++
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", path, link[1])
			} else if anchor != "" && !anchors(md[to])[anchor] {
				t.Errorf("%s links to %s: %s has no such heading", path, link[1], to)
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d links were found", checked)
	}
	for path, text := range pages(t, ".go") {
		for _, page := range mention.FindAllString(text, -1) {
			if _, err := os.Stat(filepath.FromSlash(page)); err != nil {
				t.Errorf("%s speaks of %s, which is not there", path, page)
			}
		}
	}
}
