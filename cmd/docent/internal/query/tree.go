package query

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// newTree returns the command tree.
func newTree(app *cli.App) *cobra.Command {
	var flags scanFlags
	cmd := &cobra.Command{
		Use:     "tree [ROOT]",
		Short:   "Show the locks below ROOT with their contenders, as a tree",
		GroupID: cli.ToShow,
		Args:    cli.Args(0, 1),
		RunE: onLocks(app, &flags, func() bool { return false }, func(s inspect.Snapshot, from string) error {
			if isJSON(app) {
				return writeSnapshot(app, s, false)
			}
			return writeTree(app, s, from)
		}),
	}
	flags.define(cmd)
	return cmd
}

// marks are the characters of a tree.
type marks struct{ branch, last, down, holds, waits string }

func marksOf(app *cli.App) marks {
	locale := app.Getenv("LC_ALL")
	for _, variable := range []string{"LC_CTYPE", "LANG"} {
		if locale == "" {
			locale = app.Getenv(variable)
		}
	}
	if locale = strings.ToLower(locale); strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8") {
		return marks{"├─ ", "└─ ", "│  ", "● holds", "○ waits"}
	}
	return marks{"|- ", "`- ", "|  ", "* holds", "o waits"}
}

// A branch is a path of the tree.
type branch struct {
	name     string
	lock     *inspect.Lock
	children []*branch
}

// child returns the child with the name, which it adds if need be.
func (b *branch) child(name string) *branch {
	for _, c := range b.children {
		if c.name == name {
			return c
		}
	}
	c := &branch{name: name}
	b.children = append(b.children, c)
	return c
}

func writeTree(app *cli.App, s inspect.Snapshot, from string) error {
	top := &branch{name: from}
	for i, l := range s.Locks {
		at := top
		for part := range strings.SplitSeq(strings.Trim(strings.TrimPrefix(l.Path, strings.TrimSuffix(from, "/")), "/"), "/") {
			if part != "" {
				at = at.child(part)
			}
		}
		at.lock = &s.Locks[i]
	}
	var text strings.Builder
	text.WriteString(title(top) + "\n")
	m := marksOf(app)
	top.write(&text, "", m, s)
	_, err := fmt.Fprint(app.Out, text.String())
	if err == nil && len(s.Unread) > 0 {
		_, err = fmt.Fprintln(app.Out, unreadLine(s))
	}
	return err
}

func title(b *branch) string {
	if b.lock == nil {
		return cli.Safe(b.name)
	}
	return fmt.Sprintf("%s (%s)", cli.Safe(b.name), b.lock.Kind)
}

// write writes what is below the branch.
func (b *branch) write(text *strings.Builder, indent string, m marks, s inspect.Snapshot) {
	var contenders []inspect.Contender
	if b.lock != nil {
		contenders = b.lock.Contenders
	}
	n := len(contenders) + len(b.children)
	next := func() (own, below string) {
		if n--; n == 0 {
			return indent + m.last, indent + "   "
		}
		return indent + m.branch, indent + m.down
	}
	for _, c := range contenders {
		own, _ := next()
		state := map[inspect.State]string{inspect.Holds: m.holds, inspect.Waits: m.waits, inspect.Unknown: "? unknown"}[c.State]
		fmt.Fprintf(text, "%s%s %s %s %s %s\n", own, state, show.Side(c), show.Who(c), show.Age(s.At, c.Created), cli.Safe(path.Base(c.Znode)))
	}
	slices.SortFunc(b.children, func(x, y *branch) int { return strings.Compare(x.name, y.name) })
	for _, child := range b.children {
		own, below := next()
		text.WriteString(own + title(child) + "\n")
		child.write(text, below, m, s)
	}
}
