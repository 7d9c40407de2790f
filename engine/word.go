package engine

import "strconv"

// nameOf returns the name of a value, or its number after the name of its type.
func nameOf[V ~uint8](names []string, v V, of string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return of + "(" + strconv.Itoa(int(v)) + ")"
}

// parseName returns the value from first on that has a name.
func parseName[V ~uint8](names []string, first V, name, of, hint string) (V, error) {
	for v := first; int(v) < len(names); v++ {
		if names[v] == name {
			return v, nil
		}
	}
	return 0, &Error{Op: "parse " + of, Err: ErrInvalid, Hint: hint}
}
