package zkserver_test

import (
	"math"
	"testing"

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
			"stay at the largest, as in ZooKeeper 3.8", nil, math.MaxInt32 - 1,
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
			srv := start(t, tt.opts...)
			c := connect(t, srv)
			c.node(t, "/p", 0)
			if err := srv.SetNextSequence("/p", tt.next); err != nil {
				t.Fatal(err)
			}
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

func TestSetNextSequenceReportsANodeThatIsNone(t *testing.T) {
	t.Parallel()
	err := start(t).SetNextSequence("/nowhere", 1)
	if want := "zkserver: set next sequence of /nowhere: zkserver: no such node"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
