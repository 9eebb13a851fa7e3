package zkserver_test

import (
	"math"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestSequenceNumbersPastTheLargest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		opts []zkserver.Option
		next int32
		want []string // "" for a node that exists
	}{
		{
			"stay at the largest, as in ZooKeeper 3.8 while nothing is outstanding", nil, math.MaxInt32 - 1,
			[]string{"2147483646", "2147483647", "", ""},
		},
		{
			"go on with the smallest, if so wanted",
			[]zkserver.Option{zkserver.WithSequenceWrap()},
			math.MaxInt32 - 1,
			[]string{"2147483646", "2147483647", "-2147483648", "-2147483647"},
		},
		{"pass zero from below", nil, -2, []string{"-000000002", "-000000001", "0000000000", "0000000001"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := zkserver.Run(t, tt.opts...)
			c := connect(t, srv)
			c.node(t, "/p", 0)
			must.OK(t, srv.SetNextSequence("/p", tt.next))
			for i, want := range tt.want {
				if want == "" {
					c.fails(t, errNodeExists, create, "/p/n", []byte(nil), open(), 2)
					continue
				}
				if got := c.node(t, "/p/n", 2); got != "/p/n"+want {
					t.Errorf("child %d is %s, want /p/n%s", i, got, want)
				}
			}
		})
	}
}

func TestReadsWaitForOutstandingWrites(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, other := connect(t, srv), connect(t, srv)
		c.send(create, "/a", []byte(nil), open(), 0)
		if other.has(t, "/a") {
			t.Error("another client sees what is not committed")
		}
		began := time.Now()
		c.receive()
		if took := time.Since(began); took != time.Second {
			t.Errorf("the commit took %v, want 1s", took)
		}
		if !c.has(t, "/a") {
			t.Error("the client doesn't see its own write")
		}
		c.send(create, "/b", []byte(nil), open(), 1)
		c.send(exists, "/b", false)
		for range 2 {
			c.succeeds(t)
		}
		c.send(create, "/c", []byte(nil), open(), 1)
		c.send(del, "/b", -1)
		c.send(closeSession)
		for range 3 {
			c.succeeds(t)
		}
		other.do(t, syncOp, "/")
		if other.has(t, "/b") || other.has(t, "/c") {
			t.Error("an ephemeral node has outlived its session, of which it was made at the last moment")
		}
	}, zkserver.WithCommitTime(time.Second))
}
