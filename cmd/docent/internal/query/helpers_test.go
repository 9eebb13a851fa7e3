package query_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/form/formtest"
	"github.com/docent-go/docent/cmd/docent/internal/query"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

var update = flag.Bool("update", false, "write the golden files")

// An environment is an embedded ensemble in virtual time, and a client of it.
type environment struct {
	server *zkserver.Server
	client *framework.Client
	env    []string
}

func virtual(t *testing.T, body func(t *testing.T, env *environment), opts ...zkserver.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts := append(append(zkenv.DrawVersion(t), zkserver.WithSeed(1)), opts...)
		w := &environment{server: zkserver.Run(t, opts...), env: []string{"LANG=C.UTF-8"}}
		w.client = w.connect(t)
		body(t, w)
	})
}

func (env *environment) connect(t *testing.T) *framework.Client {
	t.Helper()
	return apptest.Client(t, env.server.Addr(), framework.WithDialer(env.server.Dial))
}

// processes returns an environment whose server is reached by TCP, in real time.
func processes(t *testing.T, opts ...zkenv.Option) (w *environment, addr string) {
	t.Helper()
	w = &environment{server: zkserver.Run(t, zkenv.DrawVersion(t, opts...)...)}
	addr = must.Get(w.server.Listen("127.0.0.1:0"))(t)
	w.client = w.connect(t)
	return w, addr
}

// A result is what a run of docent wrote, and its exit code.
type result struct {
	code     int
	out, err string
}

// docent runs the command on the environment's ensemble.
func (env *environment) docent(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	app := &cli.App{
		In: strings.NewReader(""), Out: &out, Err: &errs, Env: env.env,
		Options: []framework.Option{framework.WithDialer(env.server.Dial)},
	}
	args = append([]string{"--connect", env.server.Addr()}, args...)
	code := app.Main(t.Context(), args, query.Commands()...)
	checkForm(t, args, out.String(), errs.String())
	return result{code, out.String(), errs.String()}
}

// checkForm compares JSON with the schema.
func checkForm(t *testing.T, args []string, out, errs string) {
	t.Helper()
	i := slices.Index(args, "-o")
	if i < 0 || args[i+1] != "json" && args[i+1] != "jsonl" {
		return
	}
	for line := range strings.Lines(errs) {
		if strings.HasPrefix(line, "{") {
			formtest.Check(t, "error", line)
		}
	}
	if args[i+1] == "json" && out != "" {
		formtest.Check(t, "snapshot", out)
		return
	}
	for line := range strings.Lines(out) {
		of := "lock"
		switch {
		case strings.HasPrefix(line, `{"severity"`):
			of = "finding"
		case strings.HasPrefix(line, `{"address"`):
			of = "server"
		}
		formtest.Check(t, of, line)
	}
}

// golden compares the text with the golden file of the test.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		must.OK(t, os.WriteFile(file, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s: got\n%s\nwant\n%s (%v)", name, got, want, err)
	}
}

// contender creates a contender's znode: by the client, with the name's beginning and the data.
func contender(t *testing.T, c *framework.Client, path, data string) string {
	t.Helper()
	return must.Get(c.Create(t.Context(), path, []byte(data), framework.Ephemeral(), framework.Sequential(), framework.WithParents()))(t)
}

// metadata returns the data of docent's contender.
func metadata(host string, pid int, owner, party string) string {
	return string(lease.Metadata{
		Version: 1, Host: host, PID: pid, Owner: owner, Party: party, Since: time.UnixMilli(0).UTC(),
	}.Encode())
}

const guid = "/_c_90aa3c2e-0e4c-4b1e-8c77-3a1f9d0b6a11-"

// fill makes the locks of the tests: a mutex with a queue, a semaphore, a deadlock, hostile names.
func (env *environment) fill(t *testing.T) {
	t.Helper()
	other := env.connect(t)
	contender(t, env.client, "/locks/report"+guid+"lock-", metadata("batch-3", 811, "nightly", "6f1c"))
	<-time.After(4*time.Minute + 12*time.Second) // virtual
	contender(t, other, "/locks/report"+guid+"lock-", "10.0.3.9")
	contender(t, env.client, "/locks/report"+guid+"lock-", metadata("web-1", 7, "", "7a2d"))
	contender(t, env.client, "/locks/import/leases"+guid+"lease-", metadata("etl-1", 4411, "", "1111"))
	contender(t, other, "/locks/import/leases"+guid+"lease-", metadata("etl-2", 12, "", "2222"))
	contender(t, other, "/locks/rw"+guid+"__READ__", metadata("web-1", 7, "", "7a2d"))
	contender(t, other, "/locks/rw"+guid+"__WRIT__", "\x1b[31mred\u202e\r\n"+strings.Repeat("x", 100))
	<-time.After(12 * time.Second) // virtual
}

// schedules makes a job that is at work, one whose last host has died, and one whose data another program has
// replaced. Runs are as package schedule writes them.
func (env *environment) schedules(t *testing.T) {
	t.Helper()
	run := func(slot int, state schedule.State, host string, fence int64) schedule.Run {
		at := time.Date(2000, 1, 1, slot, 0, 0, 0, time.UTC)
		r := schedule.Run{Slot: at, State: state, From: at.Add(time.Second), Host: host, PID: 811, Fence: fence}
		if state != schedule.Running && state != schedule.Lost {
			r.To = at.Add(4*time.Minute + 12*time.Second)
		}
		return r
	}
	write := func(path, data string) {
		for _, p := range []string{path, zkpath.Epoch(path + "/lock")} {
			must.Get(env.client.Create(t.Context(), p, []byte(data), framework.WithParents()))(t)
		}
	}
	runs := func(all ...schedule.Run) string {
		return string(must.Get(json.Marshal(map[string]any{"docent": 1, "runs": all}))(t))
	}
	write("/jobs/theirs", "cron: 0 3 * * *")
	write("/jobs/hourly", runs(run(0, schedule.Failed, "\x1b[31mred", 5), run(1, schedule.Running, "web-1", 7)))
	write("/jobs/nightly", "")
	must.Get(env.client.Create(t.Context(), "/jobs/nightly/lock", []byte(metadata("batch-3", 811, "", "6f1c")), framework.Ephemeral()))(t)
	_, stat := must.Get2(env.client.Get(t.Context(), "/jobs/nightly/lock"))(t)
	data := runs(run(2, schedule.Done, "batch-1", 3), run(3, schedule.Running, "batch-3", stat.Czxid))
	must.Get(env.client.Set(t.Context(), "/jobs/nightly", []byte(data), framework.AnyVersion))(t)
	<-time.After(12 * time.Second) // virtual
}

// deadlock makes two owners wait for each other.
func (env *environment) deadlock(t *testing.T) {
	t.Helper()
	for _, step := range [][2]string{{"a", "one"}, {"b", "two"}, {"b", "one"}, {"a", "two"}} {
		contender(t, env.client, "/dead/"+step[0]+guid+"lock-", metadata("h-"+step[1], 1, "", step[1]))
		<-time.After(time.Second) // virtual
	}
}

// plain runs docent on a network, in real time.
func plain(t *testing.T, args ...string) result {
	t.Helper()
	var out bytes.Buffer
	r := plainTo(t, &out, args...)
	r.out = out.String()
	return r
}

// plainTo is plain with another output.
func plainTo(t *testing.T, out io.Writer, args ...string) result {
	t.Helper()
	var errs bytes.Buffer
	app := &cli.App{In: strings.NewReader(""), Out: out, Err: &errs}
	code := app.Main(t.Context(), args, query.Commands()...)
	return result{code, "", errs.String()}
}
