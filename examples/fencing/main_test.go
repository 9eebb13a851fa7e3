package main

import (
	"errors"
	"regexp"
	"testing"

	"github.com/docent-go/docent/examples/harness"
)

func TestALateWriterIsRefused(t *testing.T) {
	t.Parallel()
	out := harness.RunInBubble(t, run)
	for _, want := range []string{
		`first:  SQL: +<nil>\n`,
		`second: SQL: +<nil>\nsecond: ZooKeeper: <nil>\n`,
		`first:  goes on\nfirst:  SQL: +0 rows updated.*\nfirst:  ZooKeeper: framework: txn: operation 0 \(.*znode does not exist\n`,
		`the table says "second's", the znode says "second's"\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("printed %s\nwant a match of %s", out, want)
		}
	}
}

func TestTheTableTakesNoSmallerFence(t *testing.T) {
	t.Parallel()
	var report table
	for _, write := range []struct {
		fence int64
		want  error
	}{{7, nil}, {7, nil}, {9, nil}, {8, errStale}, {9, nil}} {
		if err := report.update("text", write.fence); !errors.Is(err, write.want) {
			t.Errorf("fence %d: %v, want %v", write.fence, err, write.want)
		}
	}
}
