package wire

// maxNesting is how deep a body may be nested to be answered as JSON. Many parsers end at
// 64, and one body that they cannot read would spoil the whole answer.
const maxNesting = 50

// deep reports whether the object or array in which the text begins is nested deeper than
// maxNesting. It looks at no more than that value.
func deep(text []byte) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			if depth++; depth > maxNesting {
				return true
			}
		case ']', '}':
			if depth--; depth <= 0 {
				return false
			}
		}
	}
	return false
}
