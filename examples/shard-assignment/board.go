package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/recipes/lock"
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
func (b *board) workOf(name string) func(context.Context, string) {
	return func(ctx context.Context, shard string) {
		b.put(shard, "", name)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), lock.ErrLost) {
			<-time.After(10 * time.Millisecond)
		}
		b.put(shard, name, "")
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

// settle waits until each shard is worked on by the member that it falls to.
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
		for _, shard := range b.shards {
			if owner(shard, members) == member {
				settled = settled && b.at[shard] == member
				fmt.Fprintf(&lines, " %s", shard)
			}
		}
		lines.WriteString("\n")
	}
	return lines.String(), settled, b.fault
}
