package docs_test

import (
	"slices"
	"strings"
	"testing"
)

// A reader of the page of one lock finds their way in all of them.
func TestThePagesOfLocksAreAlike(t *testing.T) {
	t.Parallel()
	sections := []string{"On the ensemble", "Requests", "What it promises", "What it does not"}
	locks := []string{"multi", "mutex", "read-write", "semaphore-mutex", "unfair-mutex"}
	for _, name := range locks {
		p := read(t, "docs/locks/"+name+".md")
		var found []string
		for _, match := range heading.FindAllStringSubmatch(p.prose, -1) {
			if slices.Contains(sections, match[2]) {
				found = append(found, match[2])
			}
		}
		if !slices.Equal(found, sections) {
			t.Errorf("%s has the sections %q, want %q", p.path, found, sections)
		}
		promises := p.prose[strings.Index(p.prose, "## What it promises"):]
		if checked := strings.Index(promises, "\nChecked by `Test"); checked < 0 || checked > strings.Index(promises, "## What it does not") {
			t.Errorf("%s does not say which tests check what it promises", p.path)
		}
	}
}
