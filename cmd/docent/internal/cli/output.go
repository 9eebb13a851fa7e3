package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"
)

// A Format is a form of the output.
type Format string

// The formats.
const (
	Text      Format = "text"
	Wide      Format = "wide" // text with more columns
	JSON      Format = "json" // one document
	JSONLines Format = "jsonl"
	Names     Format = "name" // paths alone, one a line
	SVG       Format = "svg"  // a picture, of the commands with the annotation Pictures
	DOT       Format = "dot"  // a graph for Graphviz, of the same commands
)

// Pictures is the annotation of a command that can draw.
const Pictures = "docent/pictures"

func formats() []string {
	return []string{string(Text), string(Wide), string(JSON), string(JSONLines), string(Names), string(SVG), string(DOT)}
}

// String is part of pflag.Value, as the following methods are.
func (f *Format) String() string { return string(*f) }

// Set takes a format by its name.
func (f *Format) Set(name string) error {
	if !slices.Contains(formats(), name) {
		return fmt.Errorf("%q: must be text, wide, json, jsonl or name; of doctor also svg or dot", name)
	}
	*f = Format(name)
	return nil
}

// Type names the value in the help.
func (f *Format) Type() string { return "format" }

// WriteJSON writes v to standard output: indented, or as one line for jsonl. Characters that a terminal
// would obey are escaped.
func (a *App) WriteJSON(v any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if a.settings.Output != JSONLines {
		encoder.SetIndent("", "  ")
	}
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := a.Out.Write([]byte(escapeJSON(text.String())))
	return err
}

// escapeJSON escapes the characters of strings that have no shape of their own.
func escapeJSON(document string) string {
	var safe strings.Builder
	for _, r := range document {
		if r == '\n' || unicode.IsGraphic(r) {
			safe.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&safe, `\u%04x`, unit)
		}
	}
	return safe.String()
}

// Terminal reports whether the stream is a terminal.
func Terminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Color reports whether standard output takes colours.
func (a *App) Color() bool {
	return !a.settings.NoColor && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb" && Terminal(a.Out)
}

// Says begins each line that docent says.
const Says = "docent: "

// Say writes a line to standard error, unless --quiet forbids it.
func (a *App) Say(format string, args ...any) {
	if !a.settings.Quiet {
		fmt.Fprintf(a.Err, Says+format+"\n", args...)
	}
}

// maxForeign is how many characters of a foreign text are shown.
const maxForeign = 512

// Safe returns text from elsewhere in a form that a terminal can show: no control characters, no
// characters that change the direction of writing, no invalid UTF-8, and at most 512 characters. All
// that docent did not write itself is shown through Safe: names and data of znodes, errors.
func Safe(text string) string { return safe(text, maxForeign) }

// SafeWhole is Safe without the bound, for a name that is of no use unless it is whole.
func SafeWhole(text string) string { return safe(text, len(text)) }

func safe(text string, most int) string {
	var safe strings.Builder
	shown := 0
	for i, r := range text {
		if shown++; shown > most {
			return safe.String() + "…"
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&safe, `\x%02x`, text[i])
		case r == '\n' || r == '\t' || r == '\r':
			safe.WriteString(map[rune]string{'\n': `\n`, '\t': `\t`, '\r': `\r`}[r])
		case !unicode.IsGraphic(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
			safe.WriteString(escape(r))
		default:
			safe.WriteRune(r)
		}
	}
	return safe.String()
}

// maxCell is the width of a table's widest column, unless the format is Wide.
const maxCell = 72

// Table writes rows under a header, with columns as wide as their widest cell. Cells must be safe to
// show, and have no colours. Unless the format is Wide, it shortens cells that are too wide, so that one
// long name does not widen all rows. The last column has no other to its right.
func (a *App) Table(header []string, rows [][]string) error {
	widths := make([]int, len(header))
	all := append([][]string{header}, rows...)
	for _, row := range all {
		for i, cell := range row {
			if a.settings.Output != Wide && i < len(header)-1 {
				row[i] = Shorten(cell, maxCell)
			}
			widths[i] = max(widths[i], lipgloss.Width(row[i]))
		}
	}
	var text strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-lipgloss.Width(cell)+2))
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := a.Out.Write([]byte(text.String()))
	return err
}

// Shorten returns the text, or its beginning and its end if it is wider. A path's end says most.
func Shorten(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	runes := []rune(text)
	head := cut(runes, width/3)
	slices.Reverse(runes)
	tail := cut(runes, width-width/3-1)
	slices.Reverse(tail)
	return string(head) + "…" + string(tail)
}

// cut returns the first of the characters, as many as fit.
func cut(runes []rune, width int) []rune {
	used := 0
	for i, r := range runes {
		if used += lipgloss.Width(string(r)); used > width {
			return slices.Clone(runes[:i])
		}
	}
	return slices.Clone(runes)
}

// escape returns a character as Go writes it in a string.
func escape(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
