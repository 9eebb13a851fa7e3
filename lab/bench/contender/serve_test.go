package contender_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/bench/contender"
	"github.com/docent-go/docent/testing/zkserver"
)

// converse gives the lines to a contender and returns its answers, without the
// greeting.
func converse(t *testing.T, name string, lines ...string) []contender.Answer {
	t.Helper()
	var out bytes.Buffer
	in := strings.NewReader(strings.Join(lines, "\n") + "\n")
	must.OK(t, contender.Serve(t.Context(), contender.Libraries()[name], in, &out))
	var answers []contender.Answer
	for d := json.NewDecoder(&out); d.More(); {
		var a contender.Answer
		must.OK(t, d.Decode(&a))
		answers = append(answers, a)
	}
	if len(answers) != len(lines)+1 {
		t.Fatalf("%d answers to %d commands: %+v", len(answers)-1, len(lines), answers)
	}
	return answers[1:]
}

func TestWhatCannotBeDoneIsAnErrorAndNotTheEnd(t *testing.T) {
	t.Parallel()
	server := zkserver.Run(t)
	addr := must.Get(server.Listen("127.0.0.1:0"))(t)
	answers := converse(t, "docent",
		"run sequence mutex /p 1 1 0", "dance", "run sequence mutex /p one 1 0", "connect "+addr+" 10000",
		"run waltz mutex /p 1 1 0", "run sequence latch /p 1 1 0", "gc", "run sequence mutex /p 1 3 0")
	for i, want := range []string{"not connected", "no such command", "invalid syntax", "", "no such load", "no such kind", "", ""} {
		if got := answers[i].Error; !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("answer %d has error %q, want %q", i, got, want)
		}
	}
	if answers[6].Heap <= 0 {
		t.Errorf("after gc %d bytes live", answers[6].Heap)
	}
	if got := answers[7]; got.Ops != 3 || len(got.Samples) != 3 || got.Elapsed <= 0 {
		t.Errorf("three operations are answered with %+v", got)
	}
}

// If a queue is released too early, the time of its making is measured, not the waiters' time.
func TestAQueueWaitsForGo(t *testing.T) {
	t.Parallel()
	server := zkserver.Run(t)
	addr := must.Get(server.Listen("127.0.0.1:0"))(t)
	for _, name := range []string{"docent", "go-zookeeper"} {
		// "gc" and "go" are read by the run, whose own answer is the last one.
		answers := converse(t, name, "connect "+addr+" 10000", "run queue mutex /"+name+" 5 5 0", "gc", "go")
		if !answers[1].Waiting || answers[2].Heap <= 0 || answers[3].Ops != 5 || len(answers[3].Samples) != 5 {
			t.Errorf("%s: %+v", name, answers)
		}
	}
}
