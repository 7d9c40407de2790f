package wire

import (
	"reflect"
	"strings"

	"github.com/tarryhq/tarry/internal/schema"
)

// ServerTells is what a server tells of itself, made from the tags of Server.
var ServerTells = answered("Info", "What a server tells of itself and of the engine behind it.", tagged(reflect.TypeFor[Server]())...)

// tagged are the fields of a struct, by their tags json and doc.
func tagged(t reflect.Type) (all []field) {
	for i := range t.NumField() {
		f := t.Field(i)
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
			fields = append(fields, must(a.name, isFlag, ""))
		}
		return answered("", "What the engine can do.", fields...).Schema()
	}
	switch t.Kind() {
	case reflect.Struct:
		return answered("", "0, and \"0s\" of max_delay: no limit.", tagged(t)...).Schema()
	case reflect.Slice:
		return schema.Array(typed(t.Elem()), 0)
	case reflect.String:
		return isText
	}
	return isCount
}
