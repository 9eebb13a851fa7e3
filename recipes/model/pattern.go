package model

import (
	"fmt"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/recipes/internal/args"
)

// recipe begins the text of errors.
const recipe args.Recipe = "model"

// A Pattern is a path with parameters, each of which is one whole name in braces:
//
//	const route model.Pattern = "/routes/{service}/{instance}"
type Pattern string

// Path returns the path whose parameters have the values, in their order. If the pattern or a value is
// faulty, or there are more or fewer values than parameters, Path returns an error.
func (p Pattern) Path(values ...string) (string, error) {
	path, err := p.path(values)
	return path, recipe.Error(nil, "path of", string(p), err)
}

func (p Pattern) path(values []string) (string, error) {
	names := strings.Split(string(p), "/")
	given := values
	for i, name := range names {
		if !isParameter(name) {
			continue
		}
		if len(values) == 0 {
			return "", fmt.Errorf("%d values: must be one for each parameter", len(given))
		}
		if values[0] == "" || strings.Contains(values[0], "/") {
			return "", fmt.Errorf("value %q of %s: must not be empty or contain a slash", errtype.Shortened(values[0]), name)
		}
		names[i], values = values[0], values[1:]
	}
	if len(values) > 0 {
		return "", fmt.Errorf("%d values: must be one for each parameter", len(given))
	}
	path := strings.Join(names, "/")
	if err := framework.ValidatePath(path); err != nil {
		return "", err
	}
	return path, nil
}

// Match reports whether the path is one of the pattern's, and returns the values of its parameters.
func (p Pattern) Match(path string) (values []string, ok bool) {
	names, found := strings.Split(string(p), "/"), strings.Split(path, "/")
	if len(names) != len(found) {
		return nil, false
	}
	for i, name := range names {
		switch {
		case isParameter(name) && found[i] != "":
			values = append(values, found[i])
		case name != found[i]:
			return nil, false
		}
	}
	return values, true
}

func isParameter(name string) bool {
	return len(name) > 2 && strings.HasPrefix(name, "{") && strings.HasSuffix(name, "}")
}
