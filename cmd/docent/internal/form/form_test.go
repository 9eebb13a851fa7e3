package form_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/form"
)

// A shape is what the test reads of a JSON Schema.
type shape struct {
	Ref        string           `json:"$ref"`
	Required   []string         `json:"required"`
	Properties map[string]shape `json:"properties"`
	Items      *shape           `json:"items"`
	Enum       []string         `json:"enum"`
	Defs       map[string]shape `json:"$defs"`
}

// TestSchema checks the documents that the commands write in their tests: no field is unknown to the
// schema, none that it requires is missing, and words are among those that it lists.
func TestSchema(t *testing.T) {
	t.Parallel()
	var schema shape
	if err := json.Unmarshal(form.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../query/testdata/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var document map[string]any
		if json.Unmarshal(text, &document) != nil || document["schema"] != form.Version {
			continue
		}
		checked++
		schema.check(t, file, document, schema.Defs)
	}
	if checked < 2 {
		t.Errorf("%d documents checked, want 2 or more", checked)
	}
}

func (s shape) check(t *testing.T, at string, value any, defs map[string]shape) {
	t.Helper()
	if s.Ref != "" {
		s = defs[filepath.Base(s.Ref)]
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				t.Errorf("%s: no %q", at, name)
			}
		}
		for name, field := range v {
			of, ok := s.Properties[name]
			if !ok {
				t.Errorf("%s: the schema has no %q", at, name)
			}
			of.check(t, at+"."+name, field, defs)
		}
	case []any:
		for _, item := range v {
			s.Items.check(t, at+"[]", item, defs)
		}
	case string:
		if s.Enum != nil && !slices.Contains(s.Enum, v) {
			t.Errorf("%s: %q is none of %v", at, v, s.Enum)
		}
	}
}
