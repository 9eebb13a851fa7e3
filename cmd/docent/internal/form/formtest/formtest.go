// Package formtest checks JSON against the schema of package form, in tests.
package formtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/form"
)

// A schema is the part of JSON Schema that docent's schema uses. Decoding refuses any other.
type schema struct {
	Draft       string            `json:"$schema"`
	ID          string            `json:"$id"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Ref         string            `json:"$ref"`
	Defs        map[string]schema `json:"$defs"`
	AnyOf       []schema          `json:"anyOf"` // of the whole; see Check's definition
	Type        any               `json:"type"`  // a name, or several; nil for any
	Required    []string          `json:"required"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
	Enum        []string          `json:"enum"`
	Const       string            `json:"const"`
	Pattern     string            `json:"pattern"`
	Format      string            `json:"format"`
}

// Check fails the test unless the document is what the definition of the schema says, such as "event".
// A field that the schema does not have is a fault, although readers ignore it.
func Check(t testing.TB, definition, document string) {
	t.Helper()
	for _, fault := range Faults(t, definition, document) {
		t.Errorf("%s\nof %s", fault, document)
	}
}

// Faults returns in what the document differs from the definition.
func Faults(t testing.TB, definition, document string) []string {
	t.Helper()
	var root schema
	decoder := json.NewDecoder(strings.NewReader(string(form.Schema)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&root); err != nil {
		t.Fatal("the schema:", err)
	}
	of, ok := root.Defs[definition]
	if !ok {
		t.Fatalf("the schema has no %q", definition)
	}
	var value any
	if err := json.Unmarshal([]byte(document), &value); err != nil {
		return []string{err.Error()}
	}
	c := checker{defs: root.Defs}
	c.check(of, definition, value)
	return c.faults
}

type checker struct {
	defs   map[string]schema
	faults []string
}

func (c *checker) say(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *checker) check(s schema, at string, value any) {
	if s.Ref != "" {
		s = c.defs[path.Base(s.Ref)]
	}
	types := strings.Fields(strings.Trim(fmt.Sprint(s.Type), "[]"))
	if s.Type != nil && !slices.Contains(types, typeOf(value)) {
		c.say("%s: %v is a %s, and must be %v", at, value, typeOf(value), types)
		return
	}
	switch v := value.(type) {
	case map[string]any:
		c.checkObject(s, at, v)
	case []any:
		for i, item := range v {
			c.check(*s.Items, fmt.Sprintf("%s[%d]", at, i), item)
		}
	case string:
		c.checkText(s, at, v)
	}
}

func (c *checker) checkObject(s schema, at string, object map[string]any) {
	for _, name := range s.Required {
		if _, ok := object[name]; !ok {
			c.say("%s: no %q", at, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		of, ok := s.Properties[name]
		if !ok {
			c.say("%s: the schema has no %q", at, name)
			continue
		}
		c.check(of, at+"."+name, object[name])
	}
}

func (c *checker) checkText(s schema, at, text string) {
	if s.Enum != nil && !slices.Contains(s.Enum, text) {
		c.say("%s: %q is none of %q", at, text, s.Enum)
	}
	if s.Const != "" && text != s.Const {
		c.say("%s: %q, want %q", at, text, s.Const)
	}
	if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(text) {
		c.say("%s: %q does not match %s", at, text, s.Pattern)
	}
	if s.Format == "date-time" {
		if _, err := time.Parse(time.RFC3339Nano, text); err != nil {
			c.say("%s: %v", at, err)
		}
	}
}

// typeOf returns the schema's name of the value's type. A number without a fraction is an integer.
func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
