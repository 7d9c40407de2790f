package wire

import (
	"reflect"
	"strings"

	"github.com/tarryhq/tarry/internal/schema"
)

// ServerTells is the shape of Server, made from its tags.
var ServerTells = newShape("Info", "What a server tells of itself and of the engine behind it.", false, tagged(reflect.TypeFor[Server]()))

// CallerTold is the shape of Caller, made from its tags.
var CallerTold = newShape("Caller", "The caller and its rights.", false, tagged(reflect.TypeFor[Caller]()))

// tagged returns the fields of a struct, by their json and doc tags. The fields of an
// embedded struct count as its own.
func tagged(t reflect.Type) (all []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			all = append(all, tagged(f.Type)...)
			continue
		}
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, field{name, typed(f.Type), f.Tag.Get("doc"), option != "omitempty"})
	}
	return all
}

func typed(t reflect.Type) schema.Object {
	switch t {
	case reflect.TypeFor[Duration]():
		return isDuration
	case reflect.TypeFor[Time]():
		return isInstant
	case reflect.TypeFor[map[string]bool]():
		var fields []field
		for _, a := range abilities {
			fields = append(fields, field{a.name, isFlag, "", true})
		}
		return newShape("", "What the engine can do.", false, fields).Schema()
	}
	switch t.Kind() {
	case reflect.Struct:
		return newShape("", "", false, tagged(t)).Schema()
	case reflect.Slice:
		return schema.Array(typed(t.Elem()), 0)
	case reflect.Array:
		return schema.Array(typed(t.Elem()), t.Len()).With("minItems", t.Len())
	case reflect.Pointer:
		return schema.OrNull(typed(t.Elem()))
	case reflect.Float64:
		return schema.Type("number")
	case reflect.Bool:
		return isFlag
	case reflect.String:
		return isText
	}
	return isCount
}
