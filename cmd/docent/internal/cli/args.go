package cli

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
)

// Args returns a check for the number of arguments. A wrong number is a usage error.
func Args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most {
			return Usage(fmt.Errorf("%s takes %s, and got %d: %s", cmd.CommandPath(), number(least, most), n, cmd.UseLine()))
		}
		return nil
	}
}

// Root returns the argument ROOT, below which to look.
func Root(args []string) string {
	if len(args) == 0 {
		return "/"
	}
	return args[0]
}

// number says how many arguments there may be.
func number(least, most int) string {
	switch {
	case most == 0:
		return "no argument"
	case least == 0 && most == 1:
		return "one argument at most"
	case least == 1 && most == 1:
		return "one argument"
	case most == math.MaxInt:
		return fmt.Sprintf("at least %d argument", least)
	}
	return fmt.Sprintf("%d to %d arguments", least, most)
}

// noSuchCommand refuses the arguments of docent itself, with the names of commands that are similar.
func noSuchCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	if similar := root.SuggestionsFor(args[0]); len(similar) > 0 {
		err = fmt.Errorf("%w: did you mean %s?", err, strings.Join(similar, " or "))
	}
	return Usage(err)
}

// fixHelp makes "docent help TOPIC" fail if there is no such topic or command, and completes topics.
func fixHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	show, commands := help.Run, help.ValidArgsFunction
	help.RunE = func(cmd *cobra.Command, args []string) error {
		if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
			return Usage(fmt.Errorf("no help about %q: docent --help lists the commands and topics", strings.Join(args, " ")))
		}
		show(cmd, args)
		return nil
	}
	help.ValidArgsFunction = func(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		all, directive := commands(cmd, args, begin)
		for _, topic := range topics() {
			if len(args) == 0 && strings.HasPrefix(topic.Name(), begin) {
				all = append(all, cobra.CompletionWithDesc(topic.Name(), topic.Short))
			}
		}
		return all, directive
	}
}

// Choices has the shell complete the flag's value with the words.
func Choices(cmd *cobra.Command, flag string, words ...string) {
	complete := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the command has no such flag
	}
}
