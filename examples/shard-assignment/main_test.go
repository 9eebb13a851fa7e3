package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/partition"
)

func TestShardsFollowTheWorkers(t *testing.T) {
	t.Parallel()
	want := `anna comes
  anna: s1 s2 s3 s4 s5 s6 s7 s8 s9
bert comes
  anna: s3 s4 s5 s8
  bert: s1 s2 s6 s7 s9
carla comes
  anna: s3 s5 s8
  bert: s1 s6 s7
  carla: s2 s4 s9
anna goes
  bert: s1 s5 s6 s7
  carla: s2 s3 s4 s8 s9
`
	if got := harness.RunInBubble(t, run); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}

// A worker that has lost its session has stopped, by its own clock, and comes back.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zk, err := harness.Embedded()
		if err != nil {
			t.Fatal(err)
		}
		defer zk.Embedded.Close()
		b := newBoard(9)
		members := []string{"anna", "bert"}
		for _, name := range members {
			leave, err := b.start(t.Context(), zk, name)
			if err != nil {
				t.Fatal(err)
			}
			defer leave()
		}
		if _, err := b.settle(t.Context(), members); err != nil {
			t.Fatal(err)
		}
		b.mu.Lock()
		before := b.puts
		b.mu.Unlock()
		zk.Embedded.Refuse()
		zk.Embedded.Cut()
		<-time.After(10 * time.Minute) // longer than the client tries by its own policy
		b.mu.Lock()
		for shard, name := range b.at {
			if name != "" {
				t.Errorf("%s is still at %s", name, shard)
			}
		}
		b.mu.Unlock()
		zk.Embedded.Accept()
		if _, err := b.settle(t.Context(), members); err != nil {
			t.Error(err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if got := b.puts - before; got < 2*9 {
			t.Errorf("%d comings and goings, want at least those of each shard", got)
		}
	})
}

// A worker whose work can't go on says so, and has left.
func TestAClosedClientEndsItsWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zk, err := harness.Embedded()
		if err != nil {
			t.Fatal(err)
		}
		defer zk.Embedded.Close()
		client, err := framework.NewClient(zk.Connect, zk.Dialer)
		if err != nil {
			t.Fatal(err)
		}
		b := newBoard(3)
		shards, err := partition.New(client, root, b.shards)
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error)
		go func() { result <- shards.Run(t.Context(), b.workOf("anna")) }()
		if _, err := b.settle(t.Context(), []string{"anna"}); err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := <-result; err == nil {
			t.Error("the worker ended without an error")
		}
		if shown := b.at["s1"] + b.at["s2"] + b.at["s3"]; shown != "" {
			t.Errorf("still at work: %s", shown)
		}
	})
}
