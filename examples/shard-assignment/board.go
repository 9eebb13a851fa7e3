package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/recipes/lease"
)

// A board knows which worker has which shard, outside ZooKeeper and across all workers.
type board struct {
	shards  []string
	changed chan struct{} // of capacity 1: a change to look at

	mu    sync.Mutex // guards following
	at    map[string]string
	puts  int
	fault error // two at one shard
}

func newBoard(shards int) *board {
	b := &board{changed: make(chan struct{}, 1), at: make(map[string]string)}
	for i := range shards {
		b.shards = append(b.shards, fmt.Sprintf("s%d", i+1))
	}
	return b
}

// workOf returns what a worker does: it has its name on the board until it is told to leave,
// and a little longer, to finish what it is at. It takes no such time where the lock is lost.
func (b *board) workOf(name string) func(context.Context, string, *lease.Lease) error {
	return func(ctx context.Context, shard string, _ *lease.Lease) error {
		b.put(shard, "", name)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), lease.ErrLost) {
			<-time.After(10 * time.Millisecond)
		}
		b.put(shard, name, "")
		return ctx.Err()
	}
}

func (b *board) put(shard, before, after string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := b.at[shard]; got != before {
		b.fault = errors.Join(b.fault, fmt.Errorf("%s: %q beside %q", shard, got, before+after))
	}
	b.at[shard] = after
	b.puts++
	b.changedLocked()
}

// report is for a worker that has ended: not well, if err is not nil.
func (b *board) report(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = errors.Join(b.fault, err)
	b.changedLocked()
}

func (b *board) changedLocked() {
	select {
	case b.changed <- struct{}{}:
	default: // a reader is about to look
	}
}

// settle waits until each shard is worked on, and all members have equal shares.
func (b *board) settle(ctx context.Context, members []string) (string, error) {
	for {
		if shown, settled, err := b.show(members); settled || err != nil {
			return shown, err
		}
		select {
		case <-b.changed:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (b *board) show(members []string) (shown string, settled bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	settled = true
	var lines strings.Builder
	for _, member := range members {
		fmt.Fprintf(&lines, "  %s:", member)
		share := 0
		for _, shard := range b.shards {
			if b.at[shard] == member {
				fmt.Fprintf(&lines, " %s", shard)
				share++
			}
		}
		lines.WriteString("\n")
		least := len(b.shards) / len(members)
		settled = settled && (share == least || share == least+1)
	}
	for _, shard := range b.shards {
		settled = settled && b.at[shard] != ""
	}
	return lines.String(), settled, b.fault
}
