// Connection-states shows the states of a client whose server can't be reached, and what happens
// to its lock. A short absence suspends the connection and costs nothing. A long one loses the
// session and the lock.
//
//	go run ./examples/connection-states                          a server within the program comes and goes
//	go run ./examples/connection-states -connect localhost:2181  stop and start yours, and watch; Ctrl-C ends it
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) (err error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer, framework.WithSessionTimeout(3*time.Second))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	mutex, err := lock.NewMutex(client, "/examples/states/lock")
	if err != nil {
		return err
	}

	ctx, done := context.WithCancel(ctx)
	defer done()
	var (
		outages  = script(zk.Embedded, done)
		lease    *lock.Lease
		sessions []int64
	)
	// The loop sees every state, in order. Blocking calls in it delay only the loop.
	for change := range client.States(ctx) {
		fmt.Fprintf(out, "%-10v %s\n", change.To, meaning(change, sessions))
		switch change.To {
		case framework.Connected:
			if len(sessions) == 0 || sessions[len(sessions)-1] != change.Session {
				sessions = append(sessions, change.Session)
			}
			if lease == nil || lease.Err() != nil {
				if lease, err = mutex.Lock(ctx); err != nil {
					return err
				}
				fmt.Fprintln(out, "           the lock is ours")
			}
		case framework.Suspended, framework.Lost:
			fmt.Fprintln(out, "           the lock:", state(lease))
		case framework.Connecting, framework.Closed, framework.AuthFailed, framework.ReadOnly:
		}
		outages(change.To)
	}
	return nil
}

// state returns the state of a lease as text; the lease may be nil.
func state(lease *lock.Lease) string {
	if lease == nil {
		return "was not ours yet"
	}
	if err := lease.Err(); err != nil {
		return err.Error()
	}
	return "still ours"
}

// meaning says what a change means for whoever uses the client.
func meaning(change framework.StateChange, sessions []int64) string {
	switch change.To {
	case framework.Connecting:
		return "operations wait for the first session"
	case framework.Connected:
		switch {
		case len(sessions) == 0:
			return "the first session"
		case sessions[len(sessions)-1] == change.Session:
			return "the same session: what it holds, it holds still"
		default:
			return "a new session: what the old one held has to be had anew"
		}
	case framework.Suspended:
		return "the connection broke; the session stands as far as can be known"
	case framework.Lost:
		return "the session is over, by the client's own clock"
	case framework.Closed:
		return "for good"
	case framework.AuthFailed:
		return "a server refused a credential"
	case framework.ReadOnly:
		return "a server without a quorum answers reads"
	}
	return ""
}

// script returns what to do in each state: the server in the program goes away for
// a moment, then for long, and comes back. Then done is called. A server of yours is left
// alone.
func script(server *zkserver.Server, done func()) func(framework.State) {
	if server == nil {
		return func(framework.State) {}
	}
	leave := func() { server.Refuse(); server.Cut() }
	connected, suspended := 0, 0
	return func(state framework.State) {
		switch state {
		case framework.Connected:
			if connected++; connected == 3 {
				done()
				return
			}
			leave()
		case framework.Suspended:
			if suspended++; suspended == 1 {
				server.Accept()
			}
		case framework.Lost:
			server.Accept()
		case framework.Connecting, framework.Closed, framework.AuthFailed, framework.ReadOnly:
		}
	}
}

func main() { harness.Main(run) }
