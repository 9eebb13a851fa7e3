package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestSettingsFollowTheZnodes(t *testing.T) {
	t.Parallel()
	want := `database db1, 10 connections
maintenance: true
database db1, 10 connections
`
	if got := harness.RunInBubble(t, run); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}

func TestAValueThatIsNoneLeavesTheLastGoodSettings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, zkserver.Run(t), filepath.Join(t.TempDir(), "settings.json"))
		s.set(t, "database/host", "db1")
		s.set(t, "database/pool", "10")
		var out strings.Builder
		var pools []int
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		s.provider.ctx = ctx
		err := follow(ctx, s.provider, &out, func(_, now settings) {
			pools = append(pools, now.Database.Pool)
			if len(pools) == 1 {
				s.set(t, "database/pool", "many")
				time.AfterFunc(time.Second, func() {
					if err := s.client.DeleteTree(t.Context(), root); err != nil {
						t.Error(err)
					}
					s.set(t, "database/pool", "20") // half of it is none
					s.set(t, "database/host", "db1")
				})
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(pools) != 2 || pools[0] != 10 || pools[1] != 20 {
			t.Errorf("pools %v, want 10 and 20", pools)
		}
		if text, err := os.ReadFile(s.provider.file); err != nil || !strings.Contains(string(text), `"20"`) {
			t.Errorf("the file has %s, want the last good settings; %v", text, err)
		}
		if !strings.Contains(out.String(), "'Database.Pool' cannot parse value") {
			t.Errorf("printed %q: it does not name the setting", out.String())
		}
	})
}

func TestAStartWithoutZooKeeperHasTheLastSettings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, file := zkserver.Run(t), filepath.Join(t.TempDir(), "settings.json")
		first := newService(t, server, file)
		first.set(t, "database/host", "db7")
		if _, err := load(first.provider); err != nil {
			t.Fatal(err)
		}
		if err := first.provider.Keep(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat("/dev/full"); err == nil { // as on a full disk, the file of before stays
			temporary := filepath.Join(filepath.Dir(file), "."+filepath.Base(file))
			if err := os.Symlink("/dev/full", temporary); err != nil {
				t.Fatal(err)
			}
			if err := first.provider.Keep(); err == nil {
				t.Error("nothing was written, and Keep returns no error")
			}
			if is, err := os.Lstat(file); err != nil || !is.Mode().IsRegular() {
				t.Fatalf("the file of before is gone: %v", err)
			}
		}
		server.Frontend(0).Kill()
		for name, want := range map[string]string{file: "db7", file + ".none": ""} {
			got, err := load(newService(t, server, name).provider)
			if got.Database.Host != want || (err == nil) != (want != "") {
				t.Errorf("with %s: host %q, %v", filepath.Base(name), got.Database.Host, err)
			}
		}
		s := newService(t, server, file)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		s.provider.ctx = ctx
		var hosts []string
		time.AfterFunc(10*time.Second, func() { _ = server.Frontend(0).Restart(); s.set(t, "database/host", "db8") })
		if err := follow(ctx, s.provider, io.Discard, func(_, now settings) { hosts = append(hosts, now.Database.Host) }); err != nil {
			t.Fatal(err)
		}
		if strings.Join(hosts, " ") != "db7 db8" {
			t.Errorf("hosts %v, want db7 of the file, then db8", hosts)
		}
	})
}

// A service has what run has.
type service struct {
	client   *framework.Client
	provider *Provider
}

func newService(t *testing.T, server *zkserver.Server, file string) service {
	t.Helper()
	client, err := framework.NewClient(server.Addr(), framework.WithDialer(server.Dial))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := cache.New(client, root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close(); _ = client.Close() })
	return service{client, &Provider{ctx: t.Context(), cache: tree, wait: 5 * time.Second, file: file}}
}

func (s service) set(t *testing.T, key, value string) {
	t.Helper()
	if _, err := s.client.CreateOrSet(t.Context(), root+"/"+key, []byte(value), framework.WithParents()); err != nil {
		t.Error(err)
	}
	if err := s.provider.cache.Sync(t.Context()); err != nil {
		t.Error(err)
	}
}
