package cli

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
)

// Bounds of the completion of paths, for which a user waits at a keyboard.
const (
	completeWithin = 2 * time.Second
	completeAtMost = 1000
)

// takesPaths reports whether the command's arguments are paths of znodes.
func takesPaths(cmd *cobra.Command) bool {
	return regexp.MustCompile(`\b(PATH|ROOT|ZNODE)\b`).MatchString(cmd.Use)
}

// CompletePath has the shell complete a path of the ensemble that the settings name. Without a connection in time
// there is nothing to complete. It is a [cobra.CompletionFunc].
func (a *App) CompletePath(cmd *cobra.Command, _ []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const as = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if begin == "" {
		return []cobra.Completion{"/"}, as
	}
	if a.load() != nil || !strings.HasPrefix(begin, "/") {
		return nil, as
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	c, err := a.Connect(ctx)
	if err != nil {
		return nil, as
	}
	defer func() { _ = c.Close() }() // the shell has no use for an error
	return completions(ctx, c, begin), as
}

// completions returns the paths that begin so, but those of contenders.
func completions(ctx context.Context, c *framework.Client, begin string) []cobra.Completion {
	dir := begin[:strings.LastIndexByte(begin, '/')+1]
	names, _, err := c.Children(ctx, "/"+strings.Trim(dir, "/"))
	if err != nil {
		return nil
	}
	slices.Sort(names)
	var list []cobra.Completion
	isContender := inspect.NamedContenders()
	for _, name := range names {
		if path := dir + name; strings.HasPrefix(path, begin) && Safe(path) == path && !isContender(path) && len(list) < completeAtMost {
			list = append(list, path)
		}
	}
	return list
}

// completeContext has the shell complete the name of a context of the file.
func (a *App) completeContext(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if a.loadFlags() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	file, err := a.readContexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(file.Contexts)), cobra.ShellCompDirectiveNoFileComp
}
