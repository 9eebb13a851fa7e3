package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/form"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/cmd/docent/internal/waits"
	"github.com/docent-go/docent/framework"
)

// A doctor is one run of doctor.
type doctor struct {
	app        *cli.App
	scan       scanFlags
	confirm    time.Duration
	heldLonger time.Duration
	failOn     string
	servers    bool
	adminPort  int
	acls       bool
}

// newDoctor returns the command doctor.
func newDoctor(app *cli.App) *cobra.Command {
	d := &doctor{app: app}
	cmd := &cobra.Command{
		Use:     "doctor [ROOT]",
		Short:   "Look for deadlocks and other faults below ROOT",
		GroupID: cli.ToShow,
		Long: "doctor asks each server how it is, which needs no quorum. Then it connects, reads all locks below\n" +
			"ROOT, and shows what is wrong: deadlocks, contenders without a session, children that take permits,\n" +
			"mixed formats, and so on. It writes no znode. It exits with 4 if it found something as bad as\n" +
			"--fail-on. docs/command.md lists the findings.",
		Args:        cli.Args(0, 1),
		Annotations: map[string]string{cli.Pictures: "yes"},
		RunE:        d.run,
	}
	d.scan.define(cmd)
	cli.DurationVar(cmd.Flags(), &d.confirm, "confirm", "", 2*time.Second, "look at waits that may last for ever again after this `time`")
	cli.DurationVar(cmd.Flags(), &d.heldLonger, "held-longer", "", 0, "report holders that have held for longer than this")
	cmd.Flags().BoolVar(&d.servers, "servers", true, "ask each server how it is, by the four-letter word srvr")
	cmd.Flags().IntVar(&d.adminPort, "admin-port", 0, "ask each server's AdminServer, too, at this `port`")
	cmd.Flags().BoolVar(&d.acls, "acls", false, "read the ACL of each lock's directory: a request for each")
	cmd.Flags().StringVar(&d.failOn, "fail-on", "error", "exit with 4 at a finding of this `severity` or worse: error, warning or info")
	cli.Choices(cmd, "fail-on", string(inspect.Error), string(inspect.Warning), string(inspect.Info))
	return cmd
}

// missingProblem is that of a ROOT that does not exist.
const missingProblem inspect.Problem = "missing"

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
	if d.adminPort < 0 || d.adminPort > 65535 {
		return cli.Usage(fmt.Errorf("--admin-port %d: must be from 1 to 65535, or 0 for none", d.adminPort))
	}
	if err := d.scan.check(args); err != nil {
		return err
	}
	return withClient(d.app, func(c *framework.Client) error { return d.diagnose(cmd.Context(), c, cli.Root(args)) })
}

// diagnose asks the servers, then connects, and reads the locks if that succeeds. It writes what it found.
func (d *doctor) diagnose(ctx context.Context, c *framework.Client, from string) error {
	servers, found := d.checkServers(ctx, c)
	if d.asText() {
		if err := d.writeServers(servers); err != nil {
			return err
		}
	}
	s, unread := inspect.Snapshot{At: time.Now()}, true
	err := d.app.AwaitConnected(ctx, c)
	switch {
	case err == nil:
		var ofLocks []inspect.Finding
		if s, ofLocks, err = d.ofLocks(ctx, c, from); err != nil {
			return err
		}
		found, unread = append(found, ofLocks...), false
	case ctx.Err() != nil || d.draws():
		return err
	default:
		found = append(found, noConnection(err, servers))
	}
	inspect.Sort(found)
	if err := d.write(s, found, servers, unread); err != nil {
		return err
	}
	worst := slices.Index(severities(), inspect.Severity(d.failOn))
	if slices.ContainsFunc(found, func(f inspect.Finding) bool {
		return f.Problem != knownFaultsProblem && slices.Index(severities(), f.Severity) <= worst
	}) {
		return &cli.ExitError{Code: cli.CodeFindings}
	}
	return nil
}

// ofLocks times a sync and reads the locks, and returns what is wrong with them.
func (d *doctor) ofLocks(ctx context.Context, c *framework.Client, from string) (inspect.Snapshot, []inspect.Finding, error) {
	slow := d.checkSync(ctx, c)
	s, found, err := d.examine(ctx, c, from)
	if err == nil {
		err = missing(ctx, c, from, s)
	}
	if errors.Is(err, framework.ErrNoNode) {
		found = append(found, inspect.NewFinding(inspect.Warning, missingProblem, from, "there is no such znode",
			"Correct the path. The directories of locks may be deleted while all of them are free."))
		err = nil
	}
	if err != nil || !d.acls {
		return s, append(slow, found...), err
	}
	open, err := d.checkACLs(ctx, c, s)
	return s, slices.Concat(slow, found, open), err
}

// examine reads the locks, and those in question once more.
func (d *doctor) examine(ctx context.Context, c *framework.Client, from string) (inspect.Snapshot, []inspect.Finding, error) {
	first, err := scan(ctx, d.app, c, from, d.scan.limits(false))
	if err != nil {
		return first, nil, err
	}
	if !first.Complete {
		d.app.Say("deadlocks may be missed")
	}
	second := first
	if d.confirm > 0 && slices.ContainsFunc(inspect.Diagnose(first, first, 0), isWait) {
		select {
		case <-time.After(d.confirm):
		case <-ctx.Done():
			return first, nil, ctx.Err()
		}
		within, cancel := bounded(ctx, d.app)
		defer cancel()
		if second, err = inspect.Confirm(within, c, first); err != nil {
			return first, nil, err
		}
	}
	return second, inspect.Diagnose(first, second, d.heldLonger), nil
}

// isWait reports whether the finding is one that a second look can refute.
func isWait(f inspect.Finding) bool {
	return f.Problem == inspect.Deadlock || f.Problem == inspect.SelfWait
}

// draws reports whether the output is a picture.
func (d *doctor) draws() bool {
	format := d.app.Settings().Output
	return format == cli.SVG || format == cli.DOT
}

func (d *doctor) asText() bool { return !isJSON(d.app) && !d.draws() }

// write writes what was found. The text begins with the servers, which are written already. unread says
// that the locks could not be read.
func (d *doctor) write(s inspect.Snapshot, found []inspect.Finding, servers []serverInfo, unread bool) error {
	if isJSON(d.app) {
		f := form.Of(s, d.app.Settings().Connect, false)
		f.Findings, f.Servers = form.FindingsOf(found), serversForm(servers)
		return writeForm(d.app, f)
	}
	if d.draws() {
		return d.draw(s, found)
	}
	var text strings.Builder
	known := func(f inspect.Finding) bool { return f.Problem == knownFaultsProblem }
	for _, f := range found {
		if !known(f) {
			writeFinding(&text, f, s.At)
		}
	}
	text.WriteString(verdict(s, found, unread))
	for _, f := range found { // of the servers' versions: after what is wrong now
		if known(f) {
			writeFinding(&text, f, s.At)
		}
	}
	_, err := fmt.Fprint(d.app.Out, text.String())
	return err
}

// verdict sums up what was found.
func verdict(s inspect.Snapshot, found []inspect.Finding, unread bool) string {
	findings := show.Counted(len(found), "finding")
	if unread {
		return fmt.Sprintf("the locks were not read, %s\n", findings)
	}
	has := func(p inspect.Problem) bool {
		return slices.ContainsFunc(found, func(f inspect.Finding) bool { return f.Problem == p })
	}
	text := "No deadlock found among the waits that have znodes.\n"
	switch {
	case has(inspect.Deadlock):
		text = ""
	case has(inspect.SelfWait):
		text = "No deadlock of several owners found. See self-wait above.\n"
	}
	return text + fmt.Sprintf("%s, %d waiting, %s\n", show.Counted(len(s.Locks), "lock"), s.Waiting(), findings)
}

// draw writes the wait-for graph, and says on standard error how many findings there are.
func (d *doctor) draw(s inspect.Snapshot, found []inspect.Finding) error {
	g := waits.Of(s, found)
	line := fmt.Sprintf("%s, %s", show.Counted(len(s.Locks), "lock"), show.Counted(len(found), "finding"))
	if g.Left > 0 {
		line += "; " + show.Counted(g.Left, "waiter") + " left out"
	}
	d.app.Say("%s", line)
	text := dot(g)
	if d.app.Settings().Output == cli.SVG {
		text = svg(g)
	}
	_, err := fmt.Fprint(d.app.Out, text)
	return err
}

// writeFinding writes the finding: a line, then one for each edge and detail, then the advice.
func writeFinding(text *strings.Builder, f inspect.Finding, now time.Time) {
	const indent = "          "
	names := make(ownerNames)
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
			indent, names.of(e.Waiter), cli.Safe(e.Lock), show.Age(now, e.Waiter.Created), how, names.of(e.Blocker))
	}
	for _, detail := range f.Details {
		text.WriteString(indent + cli.Safe(detail) + "\n")
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

// ownerNames has the first name of each party of a finding, by its id.
type ownerNames map[string]string

// of names the contender. An owner may have several processes, as nested execs are: without the first
// one's name no reader would see the cycle.
func (n ownerNames) of(c inspect.Contender) string {
	party, name := inspect.PartyOf(c), show.Who(c)
	first, known := n[party.ID]
	switch {
	case !known:
		n[party.ID] = name
	case first != name && party.Strength == inspect.BySession:
		return name + " (same session as " + first + ")"
	case first != name:
		return name + " (same owner as " + first + ")"
	}
	return name
}
