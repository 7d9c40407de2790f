package tarry_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/tarryhq/tarry"
)

// Each function of a Meter is told to all that have it, in their order, with what it was
// told; one that nobody has stays nil.
func TestMetersTellEach(t *testing.T) {
	var told []string
	typ := reflect.TypeFor[tarry.Meter]()
	made := func(name string, without int) *tarry.Meter {
		m := new(tarry.Meter)
		for i := range typ.NumField() {
			if i == without {
				continue
			}
			f := typ.Field(i)
			reflect.ValueOf(m).Elem().Field(i).Set(reflect.MakeFunc(f.Type, func(args []reflect.Value) []reflect.Value {
				line := name + " " + f.Name
				for _, a := range args {
					line += fmt.Sprintf(" %v", a)
				}
				told = append(told, line)
				return nil
			}))
		}
		return m
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		args := make([]reflect.Value, f.Type.NumIn())
		text := f.Name
		for j := range args {
			args[j] = reflect.New(f.Type.In(j)).Elem()
			if args[j].Kind() == reflect.String {
				args[j].SetString(fmt.Sprint("arg", j))
			}
			text += fmt.Sprintf(" %v", args[j])
		}
		for _, c := range []struct {
			m    *tarry.Meter
			want []string
		}{
			{tarry.Meters(made("a", -1), nil, made("b", -1), made("c", -1)), []string{"a " + text, "b " + text, "c " + text}},
			{tarry.Meters(made("a", i), made("b", -1)), []string{"b " + text}},
			{tarry.Meters(made("a", -1), made("b", i)), []string{"a " + text}},
			{tarry.Meters(nil, made("a", -1)), []string{"a " + text}},
		} {
			told = nil
			reflect.ValueOf(c.m).Elem().Field(i).Call(args)
			if !slices.Equal(told, c.want) {
				t.Errorf("%s: told was %q, want %q", f.Name, told, c.want)
			}
		}
		if !reflect.ValueOf(tarry.Meters(made("a", i), made("b", i))).Elem().Field(i).IsNil() {
			t.Errorf("%s: nobody has it, and yet it is told", f.Name)
		}
	}
	if tarry.Meters() != nil || tarry.Meters(nil, nil) != nil {
		t.Error("none is not nil")
	}
}
