// Fencing shows the one case in which a lock can't help. Its holder is stopped as a whole (a
// suspended machine, SIGSTOP, a long pause of a hypervisor), and its session ends. Another process
// gets the lock, and then the first continues where it was. No notification could reach it in
// time, so the store that it writes to has to refuse it:
//
//   - a store of your own, such as a table of an SQL database, by the number of
//     Lease.Fence, which grows from holder to holder;
//   - ZooKeeper itself, by Lease.Guard in the transaction that writes.
//
// Here the first holder is not really stopped: it only doesn't check its lease for a while. To the
// stores that is the same.
//
//	go run ./examples/fencing                          on a server within the program
//	go run ./examples/fencing -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

var errStale = errors.New("0 rows updated: somebody with a larger fence was here")

// A table represents one of an SQL database:
//
//	CREATE TABLE report (id INT PRIMARY KEY, text TEXT, fence BIGINT NOT NULL)
type table struct {
	mu    sync.Mutex // guards following
	text  string
	fence int64
}

// update represents
//
//	UPDATE report SET text = ?, fence = ? WHERE id = 1 AND fence <= ?
//
// and a check of how many rows that updated. It is one statement: to read the fence first and
// write later would leave open the gap that it is to close.
func (t *table) update(text string, fence int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fence > fence {
		return errStale
	}
	t.text, t.fence = text, fence
	return nil
}

// A writer is one process that writes reports while it holds the lock.
type writer struct {
	client *framework.Client
	lease  *lock.Lease
}

const znode = "/examples/fencing/report"

func newWriter(ctx context.Context, zk harness.ZooKeeper) (*writer, error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return nil, err
	}
	mutex, err := lock.NewMutex(client, "/examples/fencing/lock")
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	lease, err := mutex.Lock(ctx)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &writer{client, lease}, nil
}

func (w *writer) writeSQL(t *table, text string) error {
	fence := w.lease.Fence()
	return t.update(text, fence)
}

func (w *writer) writeZNode(ctx context.Context, text string) error {
	_, err := w.client.Txn(ctx, w.lease.Guard(), framework.OpSet(znode, []byte(text), framework.AnyVersion))
	return err
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) (err error) {
	report := new(table)
	first, err := newWriter(ctx, zk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, first.client.Close()) }()
	if _, err := first.client.CreateOrSet(ctx, znode, []byte("empty"), framework.WithParents()); err != nil {
		return err
	}
	fmt.Fprintln(out, "first:  holds the lock")
	fmt.Fprintln(out, "first:  SQL:      ", first.writeSQL(report, "first's"))
	fmt.Fprintln(out, "first:  ZooKeeper:", first.writeZNode(ctx, "first's"))
	fmt.Fprintln(out, "first:  is stopped")

	// The ensemble deletes the holder's znode when its session has ended. The first writer notices
	// when it checks its lease, and a stopped process doesn't check.
	if err := first.client.Delete(ctx, first.lease.Node()); err != nil {
		return err
	}
	second, err := newWriter(ctx, zk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.client.Close()) }()
	fmt.Fprintln(out, "second: holds the lock")
	fmt.Fprintln(out, "second: SQL:      ", second.writeSQL(report, "second's"))
	fmt.Fprintln(out, "second: ZooKeeper:", second.writeZNode(ctx, "second's"))

	fmt.Fprintln(out, "first:  goes on")
	late, refused := first.writeSQL(report, "late"), first.writeZNode(ctx, "late")
	fmt.Fprintln(out, "first:  SQL:      ", late)
	fmt.Fprintln(out, "first:  ZooKeeper:", refused)
	if !errors.Is(late, errStale) || !errors.Is(refused, framework.ErrNoNode) {
		return errors.New("the first writer was not refused")
	}

	data, _, err := second.client.Get(ctx, znode)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the table says %q, the znode says %q\n", report.text, data)
	return second.lease.Release(ctx)
}

func main() { harness.Main(run) }
