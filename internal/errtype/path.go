package errtype

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Path returns a path as the text of an error shows it: not too long, and quoted if it has a
// character that could end the line or that can't be printed.
func Path(path string) string {
	path = Shortened(path)
	if strings.ContainsFunc(path, func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}

// maxShownPath is how much of a path an error shows, in bytes.
const maxShownPath = 256

// Shortened returns the path if it is not too long, and its beginning if it is. It cuts between two
// characters.
func Shortened(path string) string {
	if len(path) <= maxShownPath {
		return path
	}
	end := maxShownPath
	for end > maxShownPath-utf8.UTFMax && !utf8.RuneStart(path[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", path[:end], len(path))
}
