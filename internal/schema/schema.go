// Package schema builds JSON Schemas for OpenAPI 3.1, and the document around them.
package schema

import (
	"bytes"
	"encoding/json"
)

// Object is a JSON object that keeps the order of its members.
type Object []Member

// Member is a member of an Object. Its value is marshalled by encoding/json.
type Member struct {
	Name  string
	Value any
}

// With returns a copy of o with one more member.
func (o Object) With(name string, value any) Object {
	return append(o[:len(o):len(o)], Member{name, value})
}

// MarshalJSON encodes the object.
func (o Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m.Value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Type returns the schema of a type: "string", "boolean", …
func Type(name string) Object { return Object{{"type", name}} }

// Text returns the schema of a string of least to most characters; most 0: any number.
func Text(least, most int) Object {
	o := Type("string")
	if least > 0 {
		o = o.With("minLength", least)
	}
	if most > 0 {
		o = o.With("maxLength", most)
	}
	return o
}

// Whole returns the schema of a whole number from least to most.
func Whole(least, most int64) Object {
	return Type("integer").With("minimum", least).With("maximum", most)
}

// Words returns the schema of an enumeration of strings.
func Words(words ...string) Object { return Type("string").With("enum", words) }

// Array returns the schema of an array of at most most items; 0: any number.
func Array(items Object, most int) Object {
	o := Type("array").With("items", items)
	if most > 0 {
		o = o.With("maxItems", most)
	}
	return o
}

// Ref returns a reference to a component.
func Ref(name string) Object { return Object{{"$ref", "#/components/schemas/" + name}} }

// OrNull returns a copy of o that allows null too. o has a type, an enum or an anyOf.
func OrNull(o Object) Object {
	n := append(Object(nil), o...)
	for i, m := range n {
		switch m.Name {
		case "type":
			n[i].Value = []any{m.Value, "null"}
		case "enum":
			words := []any{nil}
			for _, w := range m.Value.([]string) {
				words = append(words, w)
			}
			n[i].Value = words
		case "anyOf":
			n[i].Value = append([]Object{Type("null")}, m.Value.([]Object)...)
		}
	}
	return n
}
