package zkenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// outside is the host of an environment of a server that others run, by its address. It may lack
// operations, four-letter words among them.
type outside string

// errOutside is what the faults of a server return that is not the test's own. A test that needs one is
// Breakable, and skipped.
var errOutside = errors.New("zkenv: a server at " + connectVariable + " cannot be harmed")

func newOutside(t testing.TB, addr string) host {
	t.Helper()
	if _, _, err := net.SplitHostPort(addr); err != nil {
		t.Fatalf("zkenv: %s=%q: must be host:port: %v", connectVariable, addr, err)
	}
	return outside(addr)
}

func (o outside) connect() string { return string(o) }

func (o outside) member(int) string { return string(o) }

func (o outside) options() []framework.Option { return nil }

func (o outside) proxy(t testing.TB, _ int) (*zkproxy.Proxy, []framework.Option) {
	t.Helper()
	return zkproxy.Run(t, string(o)), nil
}

func (o outside) expire(ctx context.Context, _ int, s zkproxy.Session) error {
	return zktest.KillSession(ctx, string(o), s.ID, s.Password)
}

// ephemerals walks the whole tree, which every server can do.
func (o outside) ephemerals(ctx context.Context, session int64) (found []string, err error) {
	c, err := framework.NewClient(string(o), framework.WithSessionTimeout(SessionTimeout))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Sync(ctx, "/"); err != nil {
		return nil, err
	}
	for dirs := []string{"/"}; len(dirs) > 0; {
		dir := dirs[0]
		dirs = dirs[1:]
		children, _, err := c.Children(ctx, dir)
		if errors.Is(err, framework.ErrNoNode) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("zkenv: ephemerals: %w", err)
		}
		for _, name := range children {
			path := zkpath.Join(dir, name)
			st, ok, err := c.Exists(ctx, path)
			switch {
			case err != nil:
				return nil, fmt.Errorf("zkenv: ephemerals: %w", err)
			case ok && st.EphemeralOwner == session:
				found = append(found, path)
			case ok && st.EphemeralOwner == 0:
				dirs = append(dirs, path)
			}
		}
	}
	return found, nil
}

func (o outside) freeze(int) error { return errOutside }

func (o outside) thaw(int) error { return errOutside }

func (o outside) isolate(int) error { return errOutside }

func (o outside) restart(context.Context, int) error { return errOutside }

func (o outside) heal(int) {}
