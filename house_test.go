package tarry_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/tarryhq/tarry"

// mayImport says which of our packages a folder may import; the longest prefix
// that fits counts. Test files may import more.
//
// A folder named internal stands for all packages in it.
var mayImport = map[string][]string{
	"internal":          {"internal", "engine"},
	"internal/demo":     {"", "engine", "internal", "timer"},
	"timer":             {},
	"engine":            {"internal"},
	"engine/internal":   {"engine", "internal", "engine/internal"},
	"engine/enginetest": {"engine", "internal", "engine/internal"},
	"engine/memengine":  {"engine", "timer", "internal", "engine/internal"},
	"engine/httpengine": {"engine", "internal", "engine/internal"},

	"internal/targettest": {"", "engine", "forward", "intake"},

	"engine/diskengine/internal":        {"engine/diskengine/internal"},
	"engine/diskengine/internal/record": {"engine", "engine/internal", "engine/diskengine/internal/vfs"},
	"engine/diskengine/internal/store":  {"engine", "internal", "engine/internal", "engine/diskengine/internal"},
	"engine/diskengine/internal/verify": {"engine", "engine/diskengine/internal"},
	"engine/diskengine":                 {"engine", "internal", "engine/internal", "engine/diskengine/internal"},

	"engine/enginetest/workertest":      {"", "engine"},
	"engine/internal/outage":            {"", "engine", "engine/internal", "engine/enginetest"},
	"engine/internal/sqlengine/sqltest": {"", "engine", "engine/internal"},
	"engine/redisengine":                {"engine", "internal", "engine/internal"},
	"engine/redisengine/redistest":      {"engine/internal"},
	"engine/rabbitengine":               {"engine", "timer", "internal", "engine/internal"},
	"engine/pgengine":                   {"engine", "internal", "engine/internal"},
	"engine/pgengine/pgtest":            {"engine/internal"},
	"engine/mysqlengine":                {"engine", "internal", "engine/internal"},
	"engine/mysqlengine/mysqltest":      {"engine/internal"},
	"engine/rabbitengine/rabbittest":    {"engine/internal"},
	"":                                  {"engine", "internal"},
	"server":                            {"", "engine", "internal", "intake", "server/access", "trend"},
	"server/access":                     {"engine", "internal"},
	"server/beanstalk":                  {"", "engine", "internal", "server/access"},
	"trend":                             {"", "internal"},
	"tarryprom":                         {"", "engine", "intake"},
	"ui":                                {"internal"},
	"tarryotel":                         {"", "engine"},
	"tarrytest":                         {"", "engine", "engine/memengine", "internal"},
	"tarrytest/remote":                  {"tarrytest", "server"},
	"forward":                           {"", "engine", "internal", "forward", "forward/internal"},
	"intake":                            {"", "engine", "internal", "forward", "forward/amqp", "intake"},
	"cmd/tarry":                         {"internal"},
	"internal/cli":                      {"", "tarryprom", "trend", "engine", "internal", "server", "server/access", "server/beanstalk", "tarryotel", "ui", "engine/memengine", "engine/diskengine", "engine/httpengine", "engine/redisengine", "engine/pgengine", "engine/mysqlengine", "engine/rabbitengine", "forward", "forward/webhook", "forward/amqp", "forward/nats", "forward/kafka", "forward/redisstream", "intake", "intake/amqp", "intake/nats", "intake/redisstream"},
	"examples":                          {"", "tarryprom", "engine/memengine", "engine/diskengine", "engine/httpengine", "engine/redisengine", "engine/pgengine", "engine/mysqlengine", "engine/rabbitengine", "forward", "forward/webhook", "forward/amqp", "forward/nats", "forward/kafka", "forward/redisstream"},
}

var buckets = []string{"util", "utils", "common", "helper", "helpers", "misc", "pkg", "models"}

// goFiles are the files of this module by folder, without tests.
func goFiles(t *testing.T) map[string][]*ast.File {
	t.Helper()
	folders, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

var parsed = sync.OnceValues(func() (map[string][]*ast.File, error) {
	folders := make(map[string][]*ast.File)
	fset := token.NewFileSet()
	return folders, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if path != "." && (err == nil || strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir // or a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if dir == "." {
			dir = ""
		}
		folders[dir] = append(folders[dir], f)
		return nil
	})
})

func TestHouseImportsPointOneWay(t *testing.T) {
	for dir, files := range goFiles(t) {
		rule, allowed := "", []string(nil)
		for prefix, may := range mayImport {
			if (dir == prefix || strings.HasPrefix(dir, prefix+"/")) && len(prefix) >= len(rule) && (prefix != "" || dir == "") {
				rule, allowed = prefix, may
			}
		}
		if allowed == nil {
			t.Errorf("%s: no rule says what it may import; add one to mayImport", dir)
			continue
		}
		for _, f := range files {
			for _, imp := range f.Imports {
				path, _ := strconv.Unquote(imp.Path.Value)
				ours, ok := strings.CutPrefix(path, module)
				if !ok {
					continue
				}
				ours = strings.TrimPrefix(ours, "/")
				if ours == dir || strings.HasPrefix(ours, dir+"/internal") {
					continue
				}
				found := false
				for _, a := range allowed {
					found = found || a == ours || (a == "internal" || strings.HasSuffix(a, "/internal")) && strings.HasPrefix(ours, a+"/")
				}
				if !found {
					t.Errorf("%s imports %s, which its rule %v does not allow", dir, path, allowed)
				}
			}
		}
	}
}

func TestHouseEveryPackageHasADocComment(t *testing.T) {
	for dir, files := range goFiles(t) {
		found := false
		for _, f := range files {
			found = found || f.Doc != nil
		}
		if !found {
			t.Errorf("%q has no package comment", dir)
		}
	}
}

func TestHouseEveryExportedNameHasADocComment(t *testing.T) {
	for dir, files := range goFiles(t) {
		for _, f := range files {
			if f.Name.Name == "main" {
				continue
			}
			for _, decl := range f.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
						t.Errorf("%s: %s has no comment", dir, d.Name.Name)
					}
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
							t.Errorf("%s: type %s has no comment", dir, s.Name.Name)
						}
					}
				}
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	return d.Recv == nil || ast.IsExported(receiver(d))
}

// receiver is the name of the type that a method is of.
func receiver(d *ast.FuncDecl) string {
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

func TestHouseNoBucketFolders(t *testing.T) {
	for dir := range goFiles(t) {
		for part := range strings.SplitSeq(dir, "/") {
			for _, b := range buckets {
				if part == b {
					t.Errorf("%s: a folder named %s says nothing of what it holds", dir, b)
				}
			}
		}
	}
}
