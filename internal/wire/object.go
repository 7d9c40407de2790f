package wire

import (
	"math/bits"
	"slices"
)

// Object is a JSON object of the API that holds a T. It has one member for each field, which
// says how the field is described, read and written.
type Object[T any] struct {
	*Shape
	members  []member[T]
	required Fields // of a request
	check    func(r *Reader, got Fields, v *T)
}

// member is a field of an object, and where a T has it.
type member[T any] struct {
	field
	label  string // its name as it is written, after a comma
	read   func(r *Reader, v *T)
	append func(b []byte, v *T) []byte
	omit   func(v *T) bool // whether to leave it out; nil: never
}

// required returns a field that is always there in answers, and required in requests.
func required[T, V any](name string, k kind[V], of func(v *T) *V, doc string) member[T] {
	return member[T]{
		field:  field{name, k.is, doc, true},
		label:  `,"` + name + `":`,
		read:   func(r *Reader, v *T) { k.read(r, name, of(v)) },
		append: func(b []byte, v *T) []byte { return k.append(b, of(v)) },
	}
}

// optional returns a field that may be missing. It is left out when it has the zero value.
func optional[T, V any](name string, k kind[V], of func(v *T) *V, doc string) member[T] {
	m := required(name, k, of, doc)
	m.required = false
	m.omit = func(v *T) bool { return k.zero(of(v)) }
	return m
}

// unless leaves a field out when omit says so.
func (m member[T]) unless(omit func(v *T) bool) member[T] {
	m.omit = omit
	return m
}

// itself is for an object with the whole of T as its only field.
func itself[T any](v *T) *T { return v }

// requestObject returns a request, or a part of one.
func requestObject[T any](name, doc string, members ...member[T]) *Object[T] {
	return newObject(name, doc, true, members)
}

// answerObject returns an answer, or a part of one. Answers may grow.
func answerObject[T any](name, doc string, members ...member[T]) *Object[T] {
	return newObject(name, doc, false, members)
}

func newObject[T any](name, doc string, strict bool, members []member[T]) *Object[T] {
	o := &Object[T]{members: members}
	var fields []field
	for i, m := range members {
		fields = append(fields, m.field)
		if strict && m.required {
			o.required |= 1 << i
		}
	}
	o.Shape = newShape(name, doc, strict, fields)
	return o
}

// only returns an object with some of the fields. Those in required must be there; those in
// optional may be missing.
func (o *Object[T]) only(name, doc string, required, optional []string) *Object[T] {
	var some []member[T]
	for _, m := range o.members {
		switch {
		case slices.Contains(required, m.name):
			m.required, m.omit = true, nil
		case slices.Contains(optional, m.name):
			m.required = false
		default:
			continue
		}
		some = append(some, m)
	}
	if len(some) != len(required)+len(optional) {
		panic("wire: " + name + " has a field that " + o.Name + " does not have")
	}
	return newObject(name, doc, o.strict, some)
}

// narrowed returns o with another description of one of its fields.
func (o *Object[T]) narrowed(name string, is Schema) *Object[T] {
	members := slices.Clone(o.members)
	for i := range members {
		if members[i].name == name {
			members[i].is = is
		}
	}
	return newObject(o.Name, o.doc, o.strict, members)
}

// checked has check called after an object was read. got are the fields that it has.
func (o *Object[T]) checked(check func(r *Reader, got Fields, v *T)) *Object[T] {
	o.check = check
	return o
}

// orNothing allows a request without a body, which then has no fields.
func (o *Object[T]) orNothing() *Object[T] {
	o.Bare = true
	return o
}

// Fields is a set of an object's fields, by their index.
type Fields uint32

// Has reports whether the set has a field, such as FieldQueue.
func (f Fields) Has(field int) bool { return f&(1<<field) != 0 }

// Read reads a request into v, which must be zero. It returns the fields that it has.
func (o *Object[T]) Read(r *Reader, v *T) (got Fields) {
	if o.Bare && len(r.data) == 0 {
		o.finish(r, 0, v)
		return 0
	}
	got = o.read(r, "request", v)
	r.end()
	return got
}

// Answer reads an answer.
func (o *Object[T]) Answer(data []byte) (v T, err error) {
	err = ReadAnswer(data, func(r *Reader) { o.read(r, "answer", &v) })
	return v, err
}

// read reads an object into v, which must be zero. what names it in errors.
func (o *Object[T]) read(r *Reader, what string, v *T) (got Fields) {
	if !r.open(what, '{') {
		return 0
	}
	var seen seen
	for f := r.next(o.names, &seen); f >= 0; f = r.next(o.names, &seen) {
		o.members[f].read(r, v)
	}
	o.finish(r, Fields(seen), v)
	return Fields(seen)
}

// finish checks an object that was read.
func (o *Object[T]) finish(r *Reader, got Fields, v *T) {
	if missing := o.required &^ got; missing != 0 {
		r.Wrong("%s: is missing", o.names[bits.TrailingZeros32(uint32(missing))])
	}
	if o.check != nil {
		o.check(r, got, v)
	}
}

// Append appends the object.
func (o *Object[T]) Append(b []byte, v *T) []byte {
	start := len(b)
	if b = o.appendFields(b, v); len(b) == start {
		b = append(b, '{')
	}
	b[start] = '{'
	return append(b, '}')
}

// appendFields appends the fields, each after a comma.
func (o *Object[T]) appendFields(b []byte, v *T) []byte {
	for i := range o.members {
		m := &o.members[i]
		if m.omit == nil || !m.omit(v) {
			b = m.append(append(b, m.label...), v)
		}
	}
	return b
}

// kind returns the kind of values that are such objects. what names one in errors.
func (o *Object[T]) kind(what string) kind[T] {
	return kind[T]{is: o.Ref(), read: func(r *Reader, _ string, v *T) { o.read(r, what, v) }, append: o.Append}
}

// kind is a kind of values: how one is described, read and written, and which is the zero one.
type kind[V any] struct {
	is     Schema
	read   func(r *Reader, name string, v *V)
	append func(b []byte, v *V) []byte
	zero   func(v *V) bool
}

// scalar returns the kind of values with these functions.
func scalar[V comparable](is Schema, read func(r *Reader, name string) V, write func(b []byte, v V) []byte) kind[V] {
	return kind[V]{
		is:     is,
		read:   func(r *Reader, name string, v *V) { *v = read(r, name) },
		append: func(b []byte, v *V) []byte { return write(b, *v) },
		zero:   func(v *V) bool { return *v == *new(V) },
	}
}

// described returns k with another description.
func (k kind[V]) described(is Schema) kind[V] {
	k.is = is
	return k
}

// checked has check called after a value was read.
func (k kind[V]) checked(check func(r *Reader, name string, v V)) kind[V] {
	read := k.read
	k.read = func(r *Reader, name string, v *V) {
		read(r, name, v)
		check(r, name, *v)
	}
	return k
}

// pointer returns the kind of values that may be missing; nil: it is.
func pointer[V any](k kind[V]) kind[*V] {
	return kind[*V]{
		is: k.is,
		read: func(r *Reader, name string, v **V) {
			*v = new(V)
			k.read(r, name, *v)
		},
		append: func(b []byte, v **V) []byte { return k.append(b, *v) },
		zero:   func(v **V) bool { return *v == nil },
	}
}

// list returns the kind of arrays of values. A request may have at most most of them; 0: any
// number.
func list[V any](k kind[V], most int) kind[[]V] {
	return kind[[]V]{
		is: arraySchema(k.is, most),
		read: func(r *Reader, name string, all *[]V) {
			*all = nil
			r.all(name, most, func(n int) {
				before := r.bad
				*all = append(*all, *new(V))
				k.read(r, name, &(*all)[n])
				r.element(name, n, before)
			})
		},
		append: func(b []byte, all *[]V) []byte { return appendAll(b, *all, k.append) },
		zero:   func(all *[]V) bool { return len(*all) == 0 },
	}
}
