package tarry_test

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// serving are folders whose packages others can import but that serve our
// commands, examples and tests: nothing is promised about their names.
var serving = []string{"cmd", "examples", "engine/enginetest/scheduletest", "engine/redisengine/redistest", "engine/pgengine/pgtest", "engine/mysqlengine/mysqltest", "engine/rabbitengine/rabbittest"}

func TestHouseExportedNamesAreThoseListed(t *testing.T) {
	const file = "docs/api.txt"
	api := api{folders: goFiles(t), lines: make(map[string]bool)}
	for dir := range api.folders {
		if isPublic(dir) {
			api.list(dir)
		}
	}
	got := slices.Sorted(maps.Keys(api.lines))
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Split(strings.TrimSpace(string(text)), "\n")
	var differ strings.Builder
	for _, line := range listed {
		if !api.lines[line] {
			fmt.Fprintf(&differ, "- %s\n", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(listed, line) {
			fmt.Fprintf(&differ, "+ %s\n", line)
		}
	}
	if differ.Len() > 0 {
		t.Errorf("the exported names differ from %s:\n%sA line with - breaks programs, and so does a method that an interface gets: from 1.0 on that needs a new major version (docs/stability.md). If the change is meant, run\n\tgo test -run %s . -update\nand say so in CHANGELOG.md.", file, differ.String(), t.Name())
	}
}

func isPublic(dir string) bool {
	return !slices.Contains(strings.Split(dir, "/"), "internal") && !slices.ContainsFunc(serving, func(s string) bool {
		return dir == s || strings.HasPrefix(dir, s+"/")
	})
}

// An api lists exported names, a line each, as go/build's listings of the
// standard library do. It works on syntax alone, so that the files of every
// system count; the type of a constant or variable is listed only where the
// source says it.
type api struct {
	folders map[string][]*ast.File
	lines   map[string]bool
}

func (a *api) list(dir string) {
	pkg := cmp.Or(dir, "tarry")
	for _, f := range a.folders[dir] {
		if f.Name.Name == "main" {
			continue
		}
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					a.add(pkg, "func %s%s", d.Name.Name, signature(d.Type))
				}
			case *ast.GenDecl:
				a.listSpecs(pkg, dir, f, d)
			}
		}
	}
}

func (a *api) listSpecs(pkg, dir string, f *ast.File, d *ast.GenDecl) {
	repeated := "" // the type of constants that repeat the one before them
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			if s.Type != nil || len(s.Values) > 0 {
				repeated = ""
			}
			if s.Type != nil {
				repeated = " " + source(s.Type)
			}
			for i, name := range s.Names {
				if !name.IsExported() {
					continue
				}
				value := ""
				if d.Tok == token.CONST && i < len(s.Values) {
					value = " = " + source(s.Values[i])
				}
				a.add(pkg, "%s %s%s%s", d.Tok, name.Name, repeated, value)
			}
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				a.listType(pkg, &declared{dir, f, s})
			}
		}
	}
}

func (a *api) listType(pkg string, t *declared) {
	if t.spec.Assign.IsValid() {
		a.add(pkg, "type %s = %s", t.spec.Name.Name, source(t.spec.Type))
		if hidden := a.hidden(t, t.spec.Type); hidden != nil {
			a.listMembers(pkg, t.spec.Name.Name, hidden)
		}
		return
	}
	a.listMembers(pkg, t.spec.Name.Name, t)
}

// listMembers lists a type, its fields and its methods under a name.
func (a *api) listMembers(pkg, name string, t *declared) {
	head := "type " + name + params(t.spec.TypeParams)
	switch typ := t.spec.Type.(type) {
	case *ast.StructType:
		a.add(pkg, "%s struct", head)
		a.listFields(pkg, name, t, typ)
	case *ast.InterfaceType:
		a.add(pkg, "%s interface", head)
		for _, m := range typ.Methods.List {
			switch {
			case m.Names == nil:
				a.add(pkg, "type %s interface, %s", name, source(m.Type))
			case m.Names[0].IsExported():
				a.add(pkg, "type %s interface, %s%s", name, m.Names[0].Name, signature(m.Type.(*ast.FuncType)))
			default:
				a.add(pkg, "type %s interface, unexported methods", name)
			}
		}
	default:
		a.add(pkg, "%s %s", head, source(typ))
	}
	a.listMethods(pkg, name, t)
}

func (a *api) listFields(pkg, name string, t *declared, typ *ast.StructType) {
	for _, field := range typ.Fields.List {
		for _, n := range field.Names {
			if n.IsExported() {
				a.add(pkg, "type %s struct, %s %s", name, n.Name, source(field.Type))
			}
		}
		if field.Names != nil {
			continue
		}
		if hidden := a.hidden(t, field.Type); hidden != nil {
			a.listMembers(pkg, name, hidden)
		} else {
			a.add(pkg, "type %s struct, embeds %s", name, source(field.Type))
		}
	}
}

func (a *api) listMethods(pkg, name string, t *declared) {
	for _, f := range a.folders[t.dir] {
		for _, decl := range f.Decls {
			d, ok := decl.(*ast.FuncDecl)
			if !ok || d.Recv == nil || !d.Name.IsExported() || receiver(d) != t.spec.Name.Name {
				continue
			}
			recv := strings.Replace(source(d.Recv.List[0].Type), t.spec.Name.Name, name, 1)
			a.add(pkg, "method (%s) %s%s", recv, d.Name.Name, signature(d.Type))
		}
	}
}

// A declared type is one in the sources of a folder.
type declared struct {
	dir  string
	file *ast.File
	spec *ast.TypeSpec
}

// hidden is the type that t is an alias of or embeds, if it is listed nowhere
// else: it is internal or not exported.
func (a *api) hidden(t *declared, typ ast.Expr) *declared {
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch e := typ.(type) {
	case *ast.Ident:
		if !e.IsExported() || !isPublic(t.dir) {
			return a.find(t.dir, e.Name)
		}
	case *ast.SelectorExpr:
		for _, imp := range t.file.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			dir, ours := strings.CutPrefix(path, module+"/")
			if ours && !isPublic(dir) && strings.HasSuffix(path, "/"+source(e.X)) {
				return a.find(dir, e.Sel.Name)
			}
		}
	}
	return nil
}

func (a *api) find(dir, name string) *declared {
	for _, f := range a.folders[dir] {
		for _, decl := range f.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.Name == name {
						return &declared{dir, f, s}
					}
				}
			}
		}
	}
	return nil
}

func (a *api) add(pkg, format string, args ...any) {
	a.lines[pkg+", "+fmt.Sprintf(format, args...)] = true
}

func params(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	return strings.TrimPrefix(source(&ast.FuncType{TypeParams: list, Params: &ast.FieldList{}}), "func")
}

func signature(t *ast.FuncType) string {
	return strings.TrimPrefix(source(t), "func")
}

// source is an expression on one line, without the names of parameters, which may change.
func source(e ast.Expr) string {
	ast.Inspect(e, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncType); ok {
			dropNames(f.Params)
			dropNames(f.Results)
		}
		return true
	})
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), e); err != nil {
		panic(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func dropNames(list *ast.FieldList) {
	if list == nil {
		return
	}
	var types []*ast.Field
	for _, field := range list.List {
		for range max(1, len(field.Names)) {
			types = append(types, &ast.Field{Type: field.Type})
		}
	}
	list.List = types
}
