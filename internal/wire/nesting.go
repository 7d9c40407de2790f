package wire

// maxNesting is how deeply a body may be nested to appear as JSON in an answer. Many parsers
// give up at 64 levels, and one body that they cannot read would spoil the whole answer.
const maxNesting = 50

// deep reports whether the first object or array in text is nested deeper than maxNesting.
// It looks at that value only.
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
