package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	isVersion = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9a-z.]+)?$`)
	heading   = regexp.MustCompile(`(?m)^## \[(.+?)\](?: - (.+))?$`)
	isDate    = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
)

// agree checks what has to hold at each commit.
func (t *tree) agree() error {
	if !isVersion.MatchString(t.version) {
		return fmt.Errorf("VERSION: %q is no version like 0.1.0", t.version[1:])
	}
	var errs []error
	if section, _ := t.section(); section != t.version[1:] {
		errs = append(errs, fmt.Errorf("CHANGELOG.md: the first section is %q, and VERSION %q", section, t.version[1:]))
	}
	for _, m := range t.modules {
		errs = append(errs, t.agreeModule(m))
	}
	return errors.Join(errs...)
}

// section returns the version and the date of the changelog's first section.
func (t *tree) section() (version, date string) {
	if found := heading.FindStringSubmatch(t.changelog); found != nil {
		return found[1], found[2]
	}
	return "", ""
}

// agreeModule checks that whoever gets module m gets the same version of docent's other modules.
func (t *tree) agreeModule(m module) error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s/go.mod: "+format, append([]any{m.dir}, args...)...))
	}
	for _, required := range m.Require {
		if !strings.HasPrefix(required.Path, docent) {
			continue
		}
		if required.Version != t.version {
			fault("requires %s %s, and VERSION is %s", required.Path, required.Version, t.version)
		}
		if m.released && !strings.Contains(m.work, "\nreplace "+required.Path+" => ") {
			fault("requires %s, and go.work beside it does not replace that by the clone", required.Path)
		}
	}
	if !m.released {
		return errors.Join(errs...)
	}
	for _, replaced := range m.Replace {
		fault("replaces %s: go install refuses such a module, and users of others never see it; replace it in go.work", replaced.Old.Path)
	}
	if !strings.Contains(t.support, "`"+strings.Replace(m.Module.Path, docent+"/", "…/", 1)+"`") {
		fault("docs/support.md does not list the module")
	}
	return errors.Join(errs...)
}

// dated checks what is decided on the day of the release.
func (t *tree) dated() error {
	if _, date := t.section(); !isDate.MatchString(date) {
		return fmt.Errorf("CHANGELOG.md: the date of %s is %q: write it as 2006-01-02", t.version[1:], date)
	}
	return nil
}

// clean checks that the commit is the tree, and that nothing has its tags.
func (t *tree) clean() error {
	changed, err := t.git("status", "--porcelain")
	if err != nil {
		return err
	}
	var errs []error
	if changed != "" {
		errs = append(errs, fmt.Errorf("the tree has changes that are not committed:\n%s", changed))
	}
	for _, tag := range t.tags() {
		exists, err := t.git("tag", "--list", tag)
		if err != nil {
			return err
		}
		if exists != "" {
			errs = append(errs, fmt.Errorf("the tag %s exists: VERSION and CHANGELOG.md need the next version", tag))
		}
	}
	return errors.Join(errs...)
}
