package inspect_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// An ensemble is an embedded server in virtual time.
type ensemble struct{ server *zkserver.Server }

func virtual(t *testing.T, body func(t *testing.T, e *ensemble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { body(t, &ensemble{zkserver.Run(t, zkenv.DrawVersion(t)...)}) })
}

// client returns a client of the ensemble.
func (e *ensemble) client(t testing.TB, opts ...framework.Option) *framework.Client {
	t.Helper()
	c := must.Get(framework.NewClient(e.server.Addr(), append(opts, framework.WithDialer(e.server.Dial))...))(t)
	t.Cleanup(func() { must.OK(t, c.Close()) })
	return c
}

// mustCreate creates a znode with its parents.
func mustCreate(t testing.TB, c *framework.Client, path string, data string, opts ...framework.CreateOption) string {
	t.Helper()
	return must.Get(c.Create(t.Context(), path, []byte(data), append(opts, framework.WithParents())...))(t)
}

func mustRead(t testing.TB, c *framework.Client, path string) inspect.Lock {
	t.Helper()
	return must.Get(inspect.Read(t.Context(), c, path))(t)
}

func mustScan(t testing.TB, c *framework.Client, root string, limits inspect.Limits) inspect.Snapshot {
	t.Helper()
	return must.Get(inspect.Scan(t.Context(), c, root, limits))(t)
}

// A znode is a child of a fixture: a name, and what was read of it.
type znode struct {
	name    string
	session int64 // 0 for a name alone; or stays
	czxid   int64
	data    string
}

// stays is the session of a znode that was read, and belongs to none.
const stays = -1

// dir returns the directory of the znodes at /l.
func dir(data string, znodes ...znode) inspect.Znode {
	return below("/l", data, znodes...)
}

func below(path, data string, znodes ...znode) inspect.Znode {
	z := inspect.Znode{Path: path, Data: []byte(data)}
	for i, child := range znodes {
		st := framework.Stat{}
		if child.session != 0 {
			st = framework.Stat{EphemeralOwner: child.session, Czxid: child.czxid, Ctime: time.UnixMilli(1000)}
			if st.Czxid == 0 {
				st.Czxid = int64(100 + i)
			}
			if child.session == stays {
				st.EphemeralOwner = 0
			}
		}
		z.Children = append(z.Children, inspect.Znode{
			Path: zkpath.Join(path, child.name), Data: []byte(child.data), Stat: st,
		})
	}
	return z
}

// queued returns the directory with the directory next to it in which kazoo's contenders queue.
func queued(z inspect.Znode, waiters ...znode) inspect.Znode {
	queue := below(z.Path+"-__lock__", "", waiters...)
	z.Queue = &queue
	return z
}

func metadata(m lease.Metadata) string {
	m.Version = lease.MetadataVersion
	return string(m.Encode())
}

// brief describes the lock in a line: contenders by the ends of their znodes' names, with state,
// side, library, and whom they wait for.
func brief(l inspect.Lock) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d", l.Kind, l.Permits)
	if l.Mixed {
		b.WriteString(" mixed")
	}
	for _, f := range l.Foreign {
		b.WriteString(" foreign " + f)
	}
	for _, c := range l.Contenders {
		fmt.Fprintf(&b, "; %s %s %s %s", tail(c.Znode), c.State, c.Side, c.By)
		for i, w := range c.WaitsFor {
			sep := "+"
			if c.AnyOf {
				sep = "|"
			}
			if i == 0 {
				sep = " for "
			}
			b.WriteString(sep + tail(w))
		}
		if c.Turn != "" {
			b.WriteString(" turn " + tail(c.Turn))
		}
	}
	return b.String()
}

// tail returns what distinguishes the znode in a test: the last two characters of its path.
func tail(path string) string { return path[len(path)-2:] }
