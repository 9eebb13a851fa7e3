package execute_test

import (
	"strconv"
	"testing"
)

// Each process of the chain starts the next one and ends. None lives long, and one lives at any time.
// docent keeps the lock until the last one has ended.
func TestLeftovers_that_start_one_another_are_awaited(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	const links = 300
	last := tempFile(t)
	link := `exec >/dev/null 2>&1; if [ $1 -gt 0 ]; then sh -c "$0" "$0" $(($1 - 1)) & else echo >` + quoted(last) + `; fi`
	p := run(t, addr, "/leftovers/chain", "--", "sh", "-c", link, link, strconv.Itoa(links))
	if contents(last) == "" {
		t.Errorf("docent ended before the last of %d processes\n%s", links, p.err.String())
	}
}

// A process that leaves the command's group while docent looks at it gets the signal: there is no need for KILL.
func TestLeftovers_that_leave_the_group_get_the_signal(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	for range 20 {
		p := run(t, addr, "--leftovers", "kill", "--grace", "9s", "/leaving", "--", "sh", "-c",
			"i=0; while [ $i -lt 60 ]; do setsid sleep 60 >/dev/null 2>&1 & i=$((i+1)); done; exit 6")
		if status := p.concludes(t, "it", 6, "done", ""); t.Failed() || status.KilledAt != nil {
			t.Fatalf("killed at %v\n%s", status.KilledAt, p.err.String())
		}
	}
}
