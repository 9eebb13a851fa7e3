package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/inspect"
)

// A doctor is one run of doctor.
type doctor struct {
	app        *cli.App
	scan       scanFlags
	confirm    time.Duration
	heldLonger time.Duration
	failOn     string
	servers    bool
}

// NewDoctor returns the command doctor.
func NewDoctor(app *cli.App) *cobra.Command {
	d := &doctor{app: app}
	cmd := &cobra.Command{
		Use:   "doctor [ROOT]",
		Short: "Look for deadlocks and other faults below ROOT",
		Long: "doctor asks each server how it is, reads all locks below ROOT, and shows what is wrong: deadlocks,\n" +
			"contenders without a session, children that take permits, mixed formats, and so on. It writes no\n" +
			"znode. It exits with 4 if it found something as bad as --fail-on.",
		Args: cli.Args(0, 1),
		RunE: d.run,
	}
	d.scan.define(cmd)
	cmd.Flags().DurationVar(&d.confirm, "confirm", 2*time.Second, "look at a deadlock again after this time")
	cmd.Flags().DurationVar(&d.heldLonger, "held-longer", 0, "report holders that have held for longer than this")
	cmd.Flags().BoolVar(&d.servers, "servers", true, "ask each server how it is, by the four-letter word srvr")
	cmd.Flags().StringVar(&d.failOn, "fail-on", "error", "exit with 4 at a finding of this severity or worse: error, warning or info")
	return cmd
}

// severities are those of findings, the worst first.
func severities() []inspect.Severity {
	return []inspect.Severity{inspect.Error, inspect.Warning, inspect.Info}
}

func (d *doctor) run(cmd *cobra.Command, args []string) error {
	if !slices.Contains(severities(), inspect.Severity(d.failOn)) {
		return cli.Usage(fmt.Errorf("--fail-on %q: must be error, warning or info", d.failOn))
	}
	if d.confirm < 0 {
		return cli.Usage(fmt.Errorf("--confirm %v: must not be negative", d.confirm))
	}
	return connected(cmd.Context(), d.app, func(c *framework.Client) error {
		servers := d.checkServers(cmd.Context(), c)
		second, found, err := d.examine(cmd.Context(), c, root(args))
		if err != nil {
			return err
		}
		found = append(servers, found...)
		inspect.Sort(found)
		if err := d.write(second, found); err != nil {
			return err
		}
		worst := slices.Index(severities(), inspect.Severity(d.failOn))
		if slices.ContainsFunc(found, func(f inspect.Finding) bool { return slices.Index(severities(), f.Severity) <= worst }) {
			return &cli.ExitError{Code: cli.CodeFindings}
		}
		return nil
	})
}

// examine reads the locks, and those in question once more.
func (d *doctor) examine(ctx context.Context, c *framework.Client, from string) (inspect.Snapshot, []inspect.Finding, error) {
	first, err := inspect.Scan(ctx, c, from, d.scan.limits(false))
	if err != nil {
		return first, nil, err
	}
	if !first.Complete {
		d.app.Say("a limit ended the search, so deadlocks may be missed: see --depth and --max")
	}
	second := first
	if d.confirm > 0 && len(inspect.Deadlocks(first, first)) > 0 {
		select {
		case <-time.After(d.confirm):
		case <-ctx.Done():
			return first, nil, ctx.Err()
		}
		if second, err = inspect.Confirm(ctx, c, first); err != nil {
			return first, nil, err
		}
	}
	return second, inspect.Diagnose(first, second, inspect.Rules{HeldLonger: d.heldLonger}), nil
}

func (d *doctor) write(s inspect.Snapshot, found []inspect.Finding) error {
	if isJSON(d.app) {
		return writeSnapshot(d.app, s, false, append([]inspect.Finding{}, found...))
	}
	var text strings.Builder
	for _, f := range found {
		writeFinding(&text, f, s.At)
	}
	if !slices.ContainsFunc(found, func(f inspect.Finding) bool { return f.Problem == inspect.Deadlock }) {
		text.WriteString("No deadlock found among the waits that have znodes.\n")
	}
	fmt.Fprintf(&text, "%s, %d waiting, %s\n", show.Counted(len(s.Locks), "lock"), s.Waiting(), show.Counted(len(found), "finding"))
	_, err := fmt.Fprint(d.app.Out, text.String())
	return err
}

// writeFinding writes the finding: a line, then one for each edge, then the advice.
func writeFinding(text *strings.Builder, f inspect.Finding, now time.Time) {
	const indent = "          "
	fmt.Fprintf(text, "%-7s %s   ", strings.ToUpper(string(f.Severity)), f.Problem)
	if f.Path != "" {
		text.WriteString(cli.Safe(f.Path) + ": ")
	}
	text.WriteString(cli.Safe(f.Text) + "\n")
	for _, e := range f.Edges {
		how := "behind"
		if e.Direct {
			how = fmt.Sprintf("held (%s) by", show.Age(now, e.Blocker.Created))
		}
		fmt.Fprintf(text, "%s%s waits for %s (%s) %s %s\n",
			indent, show.Who(e.Waiter), cli.Safe(e.Lock), show.Age(now, e.Waiter.Created), how, show.Who(e.Blocker))
	}
	if len(f.Behind) > 0 {
		fmt.Fprintf(text, "%s%s behind them\n", indent, show.Counted(len(f.Behind), "owner"))
	}
	if f.Strength != "" {
		fmt.Fprintf(text, "%sidentity: %s. %s\n", indent, f.Strength, f.Advice)
	} else if f.Advice != "" {
		text.WriteString(indent + f.Advice + "\n")
	}
}

// checkServers asks each server how it is, and times a sync.
func (d *doctor) checkServers(ctx context.Context, c *framework.Client) []inspect.Finding {
	var found []inspect.Finding
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, d.app.Settings().Timeout)
	defer cancel()
	if err := c.Sync(ctx, "/"); err != nil {
		found = append(found, inspect.Finding{
			Severity: inspect.Error, Problem: "sync", Text: "the leader does not answer: " + err.Error(), Advice: "See the servers' logs.",
		})
	} else if took := time.Since(began); took > time.Second {
		found = append(found, inspect.Finding{
			Severity: inspect.Warning, Problem: "sync", Text: fmt.Sprintf("a sync took %v", took.Round(time.Millisecond)),
			Advice: "The leader or the network to it is slow: see its disk and its load.",
		})
	}
	if !d.servers {
		return found
	}
	if s := d.app.Settings(); s.TLS || s.CA != "" || s.Cert != "" || s.ServerName != "" {
		return append(found, inspect.Finding{
			Severity: inspect.Info, Problem: "server", Text: "the servers were not asked one by one, because the connection uses TLS",
		})
	}
	for _, addr := range c.Servers() {
		found = append(found, ofServer(ctx, addr)...)
	}
	return found
}

// ofServer returns what is wrong with the server, by its answer to srvr.
func ofServer(ctx context.Context, addr string) []inspect.Finding {
	answer, err := fourLetters(ctx, addr, "srvr")
	f := inspect.Finding{Severity: inspect.Error, Problem: "server", Path: addr}
	switch {
	case err != nil:
		f.Text, f.Advice = "it can't be reached: "+err.Error(), "Start the server, or correct the address."
	case strings.Contains(answer, "not in the whitelist"):
		f.Severity, f.Text = inspect.Info, "it does not answer srvr"
		f.Advice = "To have it checked, set 4lw.commands.whitelist=srvr there."
	case strings.Contains(answer, "not currently serving requests"):
		f.Text, f.Advice = "it serves no requests: it has no quorum", "Start the other servers, or mend the network between them."
	case !strings.Contains(answer, "Mode:"):
		f.Severity, f.Text = inspect.Warning, "it gives no answer that docent knows: "+firstLine(answer)
	default:
		return nil
	}
	return []inspect.Finding{f}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
