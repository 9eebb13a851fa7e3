package query_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/docent-go/docent/cmd/docent/internal/form"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
)

// TestOutput compares what the commands write with golden files.
func TestOutput(t *testing.T) {
	t.Parallel()
	compareRuns(t, (*environment).fill, map[string]goldenRun{
		"ls":                  {[]string{"ls", "/locks"}, 0},
		"ls-age":              {[]string{"ls", "--sort", "age", "--held-longer", "1m"}, 0},
		"ls-waiting":          {[]string{"ls", "--waiting", "--sort", "waiting"}, 0},
		"ls-kind":             {[]string{"ls", "--kind", "semaphore"}, 0},
		"ls-name":             {[]string{"ls", "-o", "name"}, 0},
		"ls-nothing":          {[]string{"ls", "/locks/report", "--kind", "leader"}, 0},
		"ls-missing":          {[]string{"ls", "/missing"}, 3},
		"ls-missing-json":     {[]string{"ls", "/missing", "-o", "json"}, 3},
		"tree-missing":        {[]string{"tree", "/missing"}, 3},
		"doctor-missing":      {[]string{"doctor", "/missing", "--servers=false"}, 0},
		"ls-json":             {[]string{"ls", "/locks/report", "-o", "json"}, 0},
		"ls-jsonl":            {[]string{"ls", "-o", "jsonl"}, 0},
		"who":                 {[]string{"who", "/locks/report"}, 0},
		"who-semaphore":       {[]string{"who", "/locks/import"}, 0},
		"who-nobody":          {[]string{"who", "/locks/free"}, 3},
		"queue":               {[]string{"queue", "/locks/report"}, 0},
		"queue-blocked-by":    {[]string{"queue", "--blocked-by", "/locks/report"}, 0},
		"queue-wide":          {[]string{"queue", "-o", "wide", "/locks/report"}, 0},
		"queue-hostile":       {[]string{"queue", "/locks/rw"}, 0},
		"queue-data":          {[]string{"queue", "--data", "-o", "json", "/locks/rw"}, 0},
		"queue-name":          {[]string{"queue", "-o", "name", "/locks/report"}, 0},
		"queue-nobody":        {[]string{"queue", "/locks/free"}, 3},
		"tree":                {[]string{"tree", "/"}, 0},
		"doctor-json":         {[]string{"doctor", "-o", "json", "--acls", "--held-longer", "1m", "--servers=false"}, 0},
		"doctor-jsonl":        {[]string{"doctor", "-o", "jsonl", "--held-longer", "1m", "--servers=false"}, 0},
		"tree-json":           {[]string{"tree", "-o", "json"}, 0},
		"who-json":            {[]string{"who", "/locks/report", "-o", "json"}, 0},
		"who-nobody-json":     {[]string{"who", "/locks/free", "-o", "json"}, 3},
		"queue-jsonl":         {[]string{"queue", "/locks/rw", "-o", "jsonl"}, 0},
		"usage-json":          {[]string{"ls", "--kind", "mutexes", "-o", "json"}, 2},
		"doctor-nothing":      {[]string{"doctor", "/locks", "--servers=false"}, 0},
		"doctor-held":         {[]string{"doctor", "/locks", "--held-longer", "1m", "--fail-on", "warning", "--servers=false"}, 4},
		"usage-path":          {[]string{"who"}, 2},
		"usage-kind":          {[]string{"ls", "--kind", "mutexes"}, 2},
		"usage-break-consent": {[]string{"break", "/locks/report/x", "--session", "0x1"}, 2},
	})
}

// A goldenRun is the arguments of docent, and its exit code.
type goldenRun struct {
	args []string
	code int
}

// compareRuns compares what each run writes with the golden file of its name. fill makes the locks.
func compareRuns(t *testing.T, fill func(*environment, *testing.T), runs map[string]goldenRun) {
	t.Helper()
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, env *environment) {
				fill(env, t)
				r := env.docent(t, append([]string{"--quiet"}, run.args...)...)
				if r.code != run.code {
					t.Errorf("exit code %d, want %d: %s", r.code, run.code, r.err)
				}
				golden(t, name, r.out+r.err)
				for _, c := range r.out + r.err {
					if c != '\n' && !unicode.IsGraphic(c) {
						t.Errorf("the output has the character %U", c)
					}
				}
			})
		})
	}
}

// TestNobody: a typing error and a directory do not look like a lock that is free.
func TestNobody(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		env.fill(t)
		must.Get(env.client.Create(t.Context(), "/locks/free", nil))(t)
		for path, want := range map[string]string{
			"/locks/free":   "nobody\n",
			"/locks/reprot": "nobody: /locks/reprot does not exist (a free lock's directory may be deleted; check the path)\n",
			"/locks":        "no lock: it has locks below it, see docent ls\n",
			"/":             "no lock: it has locks below it, see docent ls\n",
		} {
			for _, command := range []string{"who", "queue"} {
				if r := env.docent(t, "--quiet", command, path); r.code != 3 || r.out != want || r.err != "" {
					t.Errorf("%s %s: exit code %d, %q %q, want %q", command, path, r.code, r.out, r.err, want)
				}
			}
		}
	})
}

// TestNobody_while_it_looks_below: a holder that comes meanwhile is not below the path, and a search that takes too
// long leaves what is known.
func TestNobody_while_it_looks_below(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"a holder comes": false, "the search takes too long": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, env *environment) {
				must.Get(env.client.Create(t.Context(), "/locks/free", nil, framework.WithParents()))(t)
				search := env.server.Rules().Add(fault.Rule{Op: fault.Sync, Action: fault.HoldRequest, Skip: 1}) // after that of the read
				ended := make(chan result, 1)
				go func() { ended <- env.docent(t, "--timeout", "3s", "who", "/locks/free") }()
				<-search.Hit()
				if late {
					<-time.After(3 * time.Second)
				} else {
					contender(t, env.client, "/locks/free"+guid+"lock-", "")
				}
				search.Release()
				r := <-ended
				if hinted := strings.Contains(r.err, "ended the search"); r.code != 3 || r.out != "nobody\n" || hinted != late {
					t.Errorf("exit code %d, %q %q", r.code, r.out, r.err)
				}
			})
		})
	}
}

// TestSchedules: ls, who and tree show the last runs, who is at work, and data that are not a schedule's.
func TestSchedules(t *testing.T) {
	t.Parallel()
	compareRuns(t, (*environment).schedules, map[string]goldenRun{
		"schedule-ls":           {[]string{"ls", "/jobs"}, 0},
		"schedule-ls-kind":      {[]string{"ls", "--kind", "schedule", "-o", "name"}, 0},
		"schedule-ls-jsonl":     {[]string{"ls", "/jobs", "-o", "jsonl"}, 0},
		"schedule-ls-age":       {[]string{"ls", "/jobs", "--sort", "age", "-o", "name"}, 0},
		"schedule-tree":         {[]string{"tree", "/jobs"}, 0},
		"schedule-who":          {[]string{"who", "/jobs/nightly"}, 0},
		"schedule-who-nobody":   {[]string{"who", "/jobs/hourly"}, 3},
		"schedule-who-json":     {[]string{"who", "/jobs/hourly", "-o", "json"}, 3},
		"schedule-who-unknown":  {[]string{"who", "/jobs/theirs"}, 3},
		"schedule-revoke":       {[]string{"revoke", "/jobs/nightly", "--yes"}, 1},
		"schedule-queue-nobody": {[]string{"queue", "/jobs/hourly"}, 3},
	})
}

// TestDoctor finds a deadlock, twice, and shows each wait.
func TestDoctor(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		env.deadlock(t)
		r := env.docent(t, "doctor", "--quiet", "--servers=false")
		if r.code != 4 {
			t.Errorf("exit code %d, want 4: %s", r.code, r.err)
		}
		golden(t, "doctor", r.out)
		r = env.docent(t, "doctor", "-o", "json", "--servers=false")
		var document form.Snapshot
		must.OK(t, json.Unmarshal([]byte(r.out), &document))
		i := slices.IndexFunc(document.Findings, func(f form.Finding) bool { return f.Problem == "deadlock" })
		if i < 0 || !document.Findings[i].Confirmed || len(document.Findings[i].Edges) != 2 {
			t.Errorf("findings: %+v", document.Findings)
		}
	})
}

// TestDoctor_names_the_processes_of_an_owner: nested execs wait in one process and hold in another.
func TestDoctor_names_the_processes_of_an_owner(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		for i, step := range [][2]string{{"a", "one"}, {"b", "two"}, {"b", "one"}, {"a", "two"}} {
			contender(t, env.client, "/dead/"+step[0]+guid+"lock-", metadata("h", i, "", step[1]))
		}
		r := env.docent(t, "doctor", "--quiet", "--servers=false")
		if !strings.Contains(r.out, "by h:1\n") || !strings.Contains(r.out, " h:3 (same owner as h:1) waits for /dead/a") {
			t.Errorf("the cycle can't be seen:\n%s", r.out)
		}
	})
}

// TestDoctor_draws the wait-for graph, with hostile names.
func TestDoctor_draws(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		env.deadlock(t)
		contender(t, env.client, "/dead/a\"<&>\u202e"+guid+"lock-", metadata("h\"<x>\\", 1, "", "three"))
		contender(t, env.client, "/dead/a\"<&>\u202e"+guid+"lock-", metadata("h-four", 1, "", "four"))
		contender(t, env.client, "/dead/a"+guid+"lock-", metadata("h-five", 1, "", "five"))
		for _, format := range []string{"dot", "svg"} {
			r := env.docent(t, "doctor", "/dead", "-o", format, "--servers=false")
			if r.code != 4 || !strings.Contains(r.err, "2 locks") && !strings.Contains(r.err, "3 locks") {
				t.Errorf("exit code %d: %s", r.code, r.err)
			}
			golden(t, "doctor-"+format, r.out)
			if err := xml.Unmarshal([]byte(r.out), new(struct{})); format == "svg" && err != nil {
				t.Error(err)
			}
		}
		r := env.docent(t, "doctor", "/empty", "-o", "svg", "--servers=false")
		if r.code != 0 || !strings.Contains(r.out, "No contender waits.") || strings.Contains(r.out, `"0 0 0 0"`) {
			t.Errorf("without waits: exit code %d: %s", r.code, r.out)
		}
		if r := env.docent(t, "ls", "-o", "svg"); r.code != 2 || !strings.Contains(r.err, "ls draws nothing") {
			t.Errorf("ls: exit code %d: %s", r.code, r.err)
		}
	})
}

// TestDoctor_reads_ACLs: directories in which all clients may delete, and one of the operator's own.
func TestDoctor_reads_ACLs(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		contender(t, env.client, "/jobs/a"+guid+"lock-", "")
		contender(t, env.client, "/jobs/b"+guid+"lock-", "")
		run := func(args ...string) result {
			return env.docent(t, append([]string{"doctor", "--acls", "--servers=false", "--fail-on", "warning"}, args...)...)
		}
		if r := run(); r.code != 0 || !strings.Contains(r.out, "INFO    open-acl   /jobs/a: every client may delete the contenders of 2 locks of 2") {
			t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
		}
		env.env = append(env.env, "DOCENT_AUTH=digest:a:b")
		if r := run(); r.code != 4 || !strings.Contains(r.out, "WARNING open-acl") {
			t.Errorf("with credentials: exit code %d: %s%s", r.code, r.out, r.err)
		}
		closed := framework.WithACL(acl.Entry{Perms: acl.Create | acl.Read, Scheme: "world", ID: "anyone"})
		must.Get(env.client.Create(t.Context(), "/own/a", nil, closed, framework.WithParents()))(t)
		contender(t, env.client, "/own/a"+guid+"lock-", "")
		if r := run("/own/a"); r.code != 0 || strings.Contains(r.out, "open-acl") {
			t.Errorf("without the permission to delete: exit code %d: %s%s", r.code, r.out, r.err)
		}
	})
}

// TestSchemaCommand prints the schema, without an ensemble.
func TestSchemaCommand(t *testing.T) {
	t.Parallel()
	if r := plain(t, "schema"); r.code != 0 || r.out != string(form.Schema) {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

// TestQueriesWriteNothing runs them with the permission to read alone, on an ensemble that is not to
// change.
func TestQueriesWriteNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		env.fill(t)
		before := fmt.Sprint(env.server.Paths())
		for _, args := range [][]string{{"ls"}, {"who", "/locks/report"}, {"queue", "/locks/report"}, {"tree"}, {"doctor", "--servers=false"}} {
			env.docent(t, args...)
		}
		if after := fmt.Sprint(env.server.Paths()); after != before {
			t.Errorf("paths before\n%s\nafter\n%s", before, after)
		}
		st, _, err := env.client.Exists(t.Context(), "/locks/report")
		if err != nil || st.Version != 0 || st.Cversion != 3 {
			t.Errorf("the lock's directory was changed: %+v, %v", st, err)
		}
	})
}

func TestList_shows_what_it_can_not_read(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		env.fill(t)
		closed := framework.WithACL(acl.Entry{Perms: acl.Create | acl.Admin, Scheme: "world", ID: "anyone"})
		must.Get(env.client.Create(t.Context(), "/locks/secret", nil, closed))(t)
		golden(t, "ls-unread", env.docent(t, "ls", "/locks").out)
		r := env.docent(t, "who", "/locks/secret", "-o", "json")
		if r.code != 1 || !strings.Contains(r.err, `"type":"no_auth"`) {
			t.Errorf("who of a secret lock: exit code %d, %s", r.code, r.err)
		}
	})
}

// TestDoctor_names_a_goroutine_that_waits_for_its_parent: the process holds and waits, by two goroutines. doctor
// does not say then that there is no deadlock.
func TestDoctor_names_a_goroutine_that_waits_for_its_parent(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		m := must.Get(lock.NewMutex(env.client, "/locks/report"))(t)
		parent := must.Get(m.Lock(t.Context()))(t)
		var child sync.WaitGroup
		child.Go(func() {
			if l, err := m.Lock(t.Context()); err != nil || l.Release(t.Context()) != nil {
				t.Errorf("the child, after the parent's release: %v", err)
			}
		})
		synctest.Wait()
		r := env.docent(t, "doctor", "/locks", "--servers=false")
		if r.code != 0 || !strings.Contains(r.out, "INFO    self-wait   /locks/report: possible: a process waits for a lock that it holds") ||
			!strings.Contains(r.out, "waits for /locks/report") || strings.Contains(r.out, "No deadlock found") {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
		must.OK(t, parent.Release(t.Context()))
		child.Wait()
	})
}

// What doctor says that it saw twice, it read twice: the wait of a process for itself that ends between the two looks,
// as that of goroutines which take turns, is not shown. That costs a sync and the reads of its lock alone, also if there
// is a deadlock of other locks.
func TestDoctor_looks_again_at_each_wait(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others []string // contenders of other locks
		code   int
		want   string
	}{
		"turns alone":       {nil, 0, "No deadlock found"},
		"beside a deadlock": {[]string{"x one", "y two", "y one", "x two"}, 4, "2 owners wait for each other, seen twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, env *environment) {
				for _, step := range test.others {
					name, party, _ := strings.Cut(step, " ")
					contender(t, env.client, "/both/"+name+guid+"lock-", metadata(party, 1, "", party))
				}
				contender(t, env.client, "/both/turns"+guid+"lock-", metadata("h", 1, "", "parent"))
				child := contender(t, env.client, "/both/turns"+guid+"lock-", metadata("h", 1, "", "child"))
				done := make(chan error, 1)
				go func() {
					<-time.After(time.Second) // virtual: between the two looks
					done <- env.client.Delete(t.Context(), child)
				}()
				r := env.docent(t, "doctor", "/both", "--servers=false")
				must.OK(t, <-done)
				if r.code != test.code || !strings.Contains(r.out, test.want) || strings.Contains(r.out, "a process waits") || strings.Contains(r.out, "self-wait") {
					t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
				}
			})
		})
	}
}
