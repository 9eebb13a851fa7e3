package digestmd5

import (
	"errors"
	"strings"
)

// errMalformed is returned for a challenge that is no list of directives.
var errMalformed = errors.New("malformed challenge")

// directives are the content of a challenge. A name may occur several times.
type directives map[string][]string

// first returns the first value of the name, "" for none.
func (d directives) first(name string) string {
	if values := d[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// parse parses a list such as name=value, name="quoted value".
func parse(challenge string) (directives, error) {
	d := make(directives)
	for rest := skip(challenge); rest != ""; rest = skip(rest) {
		name, after, ok := strings.Cut(rest, "=")
		if !ok {
			return nil, errMalformed
		}
		value, after, ok := readValue(strings.TrimLeft(after, " \t"))
		if !ok {
			return nil, errMalformed
		}
		name = strings.ToLower(strings.TrimSpace(name))
		d[name], rest = append(d[name], value), after
	}
	return d, nil
}

// skip removes the separators at the start of s.
func skip(s string) string { return strings.TrimLeft(s, ", \t\r\n") }

// readValue returns the value at the start of s, and the rest of s.
func readValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, ", \t\r\n")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// tokens splits a list of tokens.
func tokens(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

func quote(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }
