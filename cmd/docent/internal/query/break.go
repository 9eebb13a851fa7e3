package query

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/framework"
)

// A breaking is one run of break.
type breaking struct {
	app        *cli.App
	session    string
	czxid      int64
	yes        bool
	persistent bool
	context    string
}

// newBreak returns the command break.
func newBreak(app *cli.App) *cobra.Command {
	b := &breaking{app: app}
	cmd := &cobra.Command{
		Use:     "break ZNODE --session 0x…",
		Short:   "Delete one contender's znode, which ends its hold",
		GroupID: cli.ToEnd,
		Long: "break deletes the znode of one contender, which ends its hold or its wait. The process itself goes\n" +
			"on until it notices. Stop the process first: until it is known to be stopped, two may be at work.\n" +
			"docent who and docent queue show the znode's session.",
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := b.check(); err != nil {
				return err
			}
			return onClient(app, b.run)(cmd, args)
		},
	}
	cmd.Flags().StringVar(&b.session, "session", "", "the `session` of the znode, as in 0x10000a1b2c30004")
	cmd.Flags().Int64Var(&b.czxid, "czxid", 0, "the `transaction` that created the znode: its fence")
	cmd.Flags().BoolVar(&b.yes, "yes", false, "do not ask; needs --czxid")
	cmd.Flags().BoolVar(&b.persistent, "persistent", false, "the znode belongs to no session")
	cmd.Flags().StringVar(&b.context, "confirm-context", "", "the `name` of the context, if it is protected")
	return cmd
}

func (b *breaking) check() error {
	switch {
	case b.persistent == (b.session != ""):
		return cli.Usage(errors.New("give either --session or --persistent: docent queue shows the session"))
	case b.yes && b.czxid == 0:
		return cli.Usage(errors.New("--yes needs --czxid, so that no later holder is hit"))
	case !b.yes && !cli.Terminal(b.app.In):
		return cli.Usage(errors.New("without a terminal --yes and --czxid are needed"))
	}
	return nil
}

func (b *breaking) run(ctx context.Context, c *framework.Client, znode string) error {
	read, cancel := context.WithTimeout(ctx, b.app.Settings().Timeout)
	defer cancel()
	l, target, err := findContender(read, c, znode)
	if err != nil {
		return err
	}
	if err := b.matches(target); err != nil {
		return err
	}
	b.describe(l, target)
	if err := b.confirm(ctx, target); err != nil {
		return err
	}
	end, cancel := context.WithTimeout(ctx, b.app.Settings().Timeout)
	defer cancel()
	return b.delete(end, c, target)
}

// delete deletes the contender's znode, unless another one has taken its path since it was shown.
func (b *breaking) delete(ctx context.Context, c *framework.Client, target inspect.Contender) error {
	st, ok, err := c.Exists(ctx, target.Znode)
	if err != nil {
		return err
	}
	if !ok {
		_, err = fmt.Fprintln(b.app.Out, "gone already:", cli.Safe(target.Znode))
		return err
	}
	if st.Czxid != target.Czxid {
		return fmt.Errorf("the znode is of transaction %d now, not %d: nothing was done", st.Czxid, target.Czxid)
	}
	if err := c.Delete(ctx, target.Znode, framework.CreatedBy(target.Czxid)); err != nil && !errors.Is(err, framework.ErrNoNode) {
		return err
	}
	_, err = fmt.Fprintln(b.app.Out, "deleted", cli.Safe(target.Znode))
	return err
}

// matches reports why the contender is not the one that was meant.
func (b *breaking) matches(c inspect.Contender) error {
	if !c.Read() {
		return errors.New("the znode could not be read")
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(b.session), "0x"), 16, 64)
	switch {
	case b.persistent && c.Session != 0:
		return fmt.Errorf("the znode belongs to session %s: give --session", show.Session(c.Session))
	case b.persistent:
	case err != nil:
		return cli.Usage(fmt.Errorf("--session %q: must be a hexadecimal number, as in 0x10000a1b2c30004", b.session))
	case c.Session == 0:
		return errors.New("the znode belongs to no session: give --persistent")
	case uint64(c.Session) != id:
		return fmt.Errorf("the znode belongs to session %s, not %s", show.Session(c.Session), show.Session(int64(id)))
	}
	if b.czxid != 0 && b.czxid != c.Czxid {
		return fmt.Errorf("the znode was created by transaction %d, not %d", c.Czxid, b.czxid)
	}
	return nil
}

// describe says what will happen.
func (b *breaking) describe(l inspect.Lock, c inspect.Contender) {
	now := time.Now()
	say := func(format string, args ...any) { fmt.Fprintf(b.app.Err, format+"\n", args...) }
	say("%s %s %s, for %s%s, fence %d", show.Who(c), c.State, cli.Safe(l.Path), show.Age(now, c.Created), show.AlsoSession(c), c.Czxid)
	for _, next := range behind(l, c.Znode) {
		say("next: %s, which has waited for %s", show.Who(next), show.Age(now, next.Created))
	}
	if c.State == inspect.Holds {
		say("The next holder is granted at once; two may be at work until the old process is known to be stopped.")
	}
	if l.Kind.Unfair() {
		say("The name of this znode comes again: a holder that was granted in the last millisecond may be hit.")
	}
	if c.Turn != "" {
		say("It has another znode, in the queue: %s", cli.Safe(c.Turn))
	}
}

// suffix is how many characters of the znode's name the user has to type.
const suffix = 6

func (b *breaking) confirm(ctx context.Context, c inspect.Contender) error {
	if err := allowContext(ctx, b.app, b.context); err != nil || b.yes {
		return err
	}
	name := path.Base(c.Znode)
	last := name[max(0, len(name)-suffix):]
	typed, err := ask(ctx, b.app, fmt.Sprintf("Type the last %d characters of its name (%s):", len(last), cli.Safe(name)))
	if err == nil && typed != last {
		err = errRefused
	}
	return err
}
