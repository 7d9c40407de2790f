package wire

import (
	"bytes"
	"encoding/json"
)

// Schema is a JSON Schema for OpenAPI 3.1, or a part of the document around it: a JSON object
// that keeps the order of its members.
type Schema []SchemaMember

// SchemaMember is a member of a Schema. Its value is marshalled by encoding/json.
type SchemaMember struct {
	Name  string
	Value any
}

// With returns a copy of o with one more member.
func (o Schema) With(name string, value any) Schema {
	return append(o[:len(o):len(o)], SchemaMember{name, value})
}

// MarshalJSON encodes the object.
func (o Schema) MarshalJSON() ([]byte, error) {
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

// TypeSchema returns the schema of a type: "string", "boolean", …
func TypeSchema(name string) Schema { return Schema{{"type", name}} }

// textSchema returns the schema of a string of least to most characters; most 0: any number.
func textSchema(least, most int) Schema {
	o := TypeSchema("string")
	if least > 0 {
		o = o.With("minLength", least)
	}
	if most > 0 {
		o = o.With("maxLength", most)
	}
	return o
}

// wholeSchema returns the schema of a whole number from least to most.
func wholeSchema(least, most int64) Schema {
	return TypeSchema("integer").With("minimum", least).With("maximum", most)
}

// wordsSchema returns the schema of an enumeration of strings.
func wordsSchema(words ...string) Schema { return TypeSchema("string").With("enum", words) }

// arraySchema returns the schema of an array of at most most items; 0: any number.
func arraySchema(items Schema, most int) Schema {
	o := TypeSchema("array").With("items", items)
	if most > 0 {
		o = o.With("maxItems", most)
	}
	return o
}

// refSchema returns a reference to a component.
func refSchema(name string) Schema { return Schema{{"$ref", "#/components/schemas/" + name}} }

// orNull returns a copy of o that allows null too. o has a type, an enum or an anyOf.
func orNull(o Schema) Schema {
	n := append(Schema(nil), o...)
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
			n[i].Value = append([]Schema{TypeSchema("null")}, m.Value.([]Schema)...)
		}
	}
	return n
}
