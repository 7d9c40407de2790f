// Package apicheck lets tests check a server's requests and answers against its OpenAPI
// document. The schemas of OpenAPI 3.1 are JSON Schemas, so a library for these does the
// work. Each schema is compiled once.
package apicheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Checker checks exchanges against a document. It is safe for concurrent use.
type Checker struct {
	operations []operation

	// Few is how many calls of a kind Handler checks; after these it checks one in Few. 0: all.
	// It is for tests with very many calls. Set it before use.
	Few int

	mu   sync.Mutex
	seen map[string]int // by kind
}

type operation struct {
	method       string
	path         []string
	request      *jsonschema.Schema // of the body; nil: there is none
	bodyOptional bool               // a request may have no body
	inPath       map[string]*jsonschema.Schema
	inQuery      map[string]*jsonschema.Schema
	inHeader     map[string]*jsonschema.Schema
	answers      map[string]*jsonschema.Schema // by status; nil: none documented
	lines        map[string]*jsonschema.Schema // of a line, for answers made of lines
}

// Answer is the answer to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// documentURL is the address of the document, for the compiler.
const documentURL = "mem:///openapi.json"

type object = map[string]any

// New returns a Checker for a document. Answers may have only the documented fields, although
// the document allows others.
func New(document []byte) (c *Checker, err error) {
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			c, err = nil, fmt.Errorf("the document does not have the expected form: %v", p)
		}
	}()
	closeObjects(tree)
	b := builder{compiler: jsonschema.NewCompiler(), root: tree.(object)}
	b.compiler.DefaultDraft(jsonschema.Draft2020)
	b.compiler.AssertFormat()
	b.compiler.AssertContent()
	if err := b.compiler.AddResource(documentURL, tree); err != nil {
		return nil, err
	}
	c = new(Checker)
	for path, item := range b.root["paths"].(object) {
		for method, op := range item.(object) {
			c.operations = append(c.operations, b.operation(strings.ToUpper(method), path, op.(object), pointer("paths", path, method)))
		}
	}
	return c, b.err
}

// closeObjects forbids undocumented properties in all objects of a document.
func closeObjects(v any) {
	switch v := v.(type) {
	case object:
		if _, ok := v["properties"].(object); ok && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, m := range v {
			closeObjects(m)
		}
	case []any:
		for _, e := range v {
			closeObjects(e)
		}
	}
}

type builder struct {
	compiler *jsonschema.Compiler
	root     object
	err      error
}

// pointer is a JSON pointer.
func pointer(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(n))
	}
	return b.String()
}

func (b *builder) schema(at string) *jsonschema.Schema {
	s, err := b.compiler.Compile(documentURL + "#" + (&url.URL{Path: at}).EscapedPath())
	b.err = errors.Join(b.err, err)
	return s
}

func (b *builder) operation(method, path string, op object, at string) operation {
	o := operation{
		method: method, path: strings.Split(path, "/"), answers: make(map[string]*jsonschema.Schema), lines: make(map[string]*jsonschema.Schema),
		inPath: make(map[string]*jsonschema.Schema), inQuery: make(map[string]*jsonschema.Schema), inHeader: make(map[string]*jsonschema.Schema),
	}
	if body, ok := op["requestBody"].(object); ok {
		o.request, o.bodyOptional = b.schema(at+pointer("requestBody", "content", "application/json", "schema")), body["required"] != true
	}
	parameters, _ := op["parameters"].([]any)
	for i, p := range parameters {
		p, at := p.(object), at+pointer("parameters", strconv.Itoa(i))
		if ref, ok := p["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/components/parameters/")
			p, at = b.root["components"].(object)["parameters"].(object)[name].(object), pointer("components", "parameters", name)
		}
		in := map[string]map[string]*jsonschema.Schema{"path": o.inPath, "query": o.inQuery, "header": o.inHeader}[p["in"].(string)]
		in[p["name"].(string)] = b.schema(at + pointer("schema"))
	}
	for status, a := range op["responses"].(object) {
		o.answers[status] = nil
		content, _ := a.(object)["content"].(object)
		if content["application/json"] != nil {
			o.answers[status] = b.schema(at + pointer("responses", status, "content", "application/json", "schema"))
		}
		if content[linesType] != nil {
			o.lines[status] = b.schema(at + pointer("responses", status, "content", linesType, "schema"))
		}
	}
	return o
}

// Check returns an error if an answer is not documented, or if the server accepted a request
// that the document forbids. body is the request's.
func (c *Checker) Check(r *http.Request, body []byte, a Answer) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var err error
	o, variables := c.find(method, r.URL.EscapedPath())
	switch {
	case o == nil && a.Status < 400:
		err = errors.New("the document does not describe this call")
	case o == nil: // all errors are alike
		err = c.operations[0].checkAnswer(r, a)
	default:
		if err = o.checkAnswer(r, a); err == nil && a.Status < 400 && !partlyFailed(a.Body) {
			if err = o.checkRequest(r, variables, body); err != nil {
				err = fmt.Errorf("the server took what the document forbids: %w", err)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s %.300s: %d %.500s: %w", r.Method, r.URL, body, a.Status, a.Body, err)
	}
	return nil
}

// find returns the operation of a path, and the values of its variables.
func (c *Checker) find(method, path string) (found *operation, variables map[string]string) {
	segments := strings.Split(path, "/")
	for i := range c.operations {
		if o := &c.operations[i]; o.method == method && len(o.path) == len(segments) {
			if v := match(o.path, segments); v != nil && (found == nil || len(v) < len(variables)) {
				found, variables = o, v
			}
		}
	}
	return found, variables
}

// match returns the values of a path's variables; nil: it does not match.
func match(path, segments []string) map[string]string {
	v := make(map[string]string)
	for i, p := range path {
		s, err := url.PathUnescape(segments[i])
		switch name, ok := strings.CutPrefix(p, "{"); {
		case err != nil, !ok && s != p, ok && s == "":
			return nil
		case ok:
			v[strings.TrimSuffix(name, "}")] = s
		}
	}
	return v
}

func (o *operation) checkAnswer(r *http.Request, a Answer) error {
	status := strconv.Itoa(a.Status)
	s, documented := o.answers[status]
	if !documented {
		if status = "default"; a.Status < 400 {
			return errors.New("the document does not describe this status")
		}
		s = o.answers[status]
	}
	switch {
	case s == nil && len(a.Body) > 0:
		return errors.New("the document describes no body")
	case s == nil || r.Method == http.MethodHead:
		return nil
	case o.lines[status] != nil && a.Header.Get("Content-Type") == linesType:
		return validateLines(o.lines[status], a.Body)
	case a.Header.Get("Content-Type") != "application/json":
		return fmt.Errorf("the Content-Type is %q", a.Header.Get("Content-Type"))
	}
	return validate(s, a.Body)
}

func (o *operation) checkRequest(r *http.Request, variables map[string]string, body []byte) error {
	for name, s := range o.inPath {
		if err := s.Validate(variables[name]); err != nil {
			return err
		}
	}
	for name, values := range r.URL.Query() {
		s := o.inQuery[name]
		if s == nil {
			return fmt.Errorf("there is no parameter %s", name)
		}
		if values[0] == "" {
			continue // same as absent
		}
		if err := s.Validate(parameter(s, values[0])); err != nil {
			return err
		}
	}
	for name, s := range o.inHeader {
		if v := r.Header.Get(name); v != "" {
			if err := s.Validate(v); err != nil {
				return err
			}
		}
	}
	if o.request == nil || o.bodyOptional && len(body) == 0 {
		return nil
	}
	return validate(o.request, body)
}

// parameter converts a query parameter to the type of its schema.
func parameter(s *jsonschema.Schema, text string) any {
	if s.Types != nil && !s.Types.IsEmpty() && s.Types.ToStrings()[0] != "string" {
		if v, err := jsonschema.UnmarshalJSON(strings.NewReader(text)); err == nil {
			return v
		}
	}
	return text
}

func validate(s *jsonschema.Schema, text []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

const linesType = "application/x-ndjson"

// validateLines checks each line of an answer against the schema of a line.
func validateLines(s *jsonschema.Schema, text []byte) error {
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			return errors.New("the last line does not end")
		}
		if err := validate(s, line); err != nil {
			return err
		}
	}
	return nil
}

// partlyFailed reports whether an answer says that some items of its request failed.
func partlyFailed(answer []byte) bool {
	var a struct{ Failed int }
	return json.Unmarshal(answer, &a) == nil && a.Failed > 0
}
