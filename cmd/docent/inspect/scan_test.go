package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
)

// contender creates a contender's znode of a mutex at the path.
func contender(t testing.TB, c *framework.Client, path, data string, opts ...framework.CreateOption) string {
	t.Helper()
	opts = append(opts, framework.Ephemeral(), framework.Sequential(), framework.Protected())
	return mustCreate(t, c, path+"/lock-", data, opts...)
}

func paths(s inspect.Snapshot) []string {
	var all []string
	for _, l := range s.Locks {
		all = append(all, l.Path)
	}
	return all
}

func TestScan(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		for _, path := range []string{"/b", "/a/x/y", "/a", "/locks/locks"} {
			contender(t, c, path, "")
		}
		mustCreate(t, c, "/config/leases/one", "")
		contender(t, c, "/elsewhere/leases", "") // a mutex whose name is leases
		s := mustScan(t, c, "/", inspect.Limits{})
		if want := []string{"/a", "/a/x/y", "/b", "/elsewhere/leases", "/locks/locks"}; !slices.Equal(paths(s), want) {
			t.Errorf("found %v, want %v", paths(s), want)
		}
		if !s.Complete || s.At.IsZero() || s.Waiting() != 0 {
			t.Errorf("complete %v at %v, %d wait", s.Complete, s.At, s.Waiting())
		}
		if s := mustScan(t, c, "/a", inspect.Limits{}); !slices.Equal(paths(s), []string{"/a", "/a/x/y"}) {
			t.Errorf("below /a: %v", paths(s))
		}
		if s := mustScan(t, c, "/missing", inspect.Limits{}); len(s.Locks) != 0 || !s.Complete {
			t.Errorf("below a missing path: %+v", s)
		}
	})
}

func TestScan_keeps_its_limits(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		for i := range 40 {
			contender(t, c, fmt.Sprintf("/all/%02d", i), "")
		}
		contender(t, c, "/all/00/deep", "")
		for _, test := range []struct {
			limits   inspect.Limits
			least    int
			most     int
			complete bool
		}{
			{inspect.Limits{}, 41, 41, true},
			{inspect.Limits{Depth: 2}, 40, 40, false},
			{inspect.Limits{Max: 7}, 7, 7, false},
			{inspect.Limits{Max: 41}, 41, 41, true}, // as many as there are
		} {
			s := mustScan(t, c, "/", test.limits)
			if n := len(s.Locks); n < test.least || n > test.most || s.Complete != test.complete {
				t.Errorf("%+v: %d locks, complete %v", test.limits, n, s.Complete)
			}
		}
		began := time.Now() // virtual
		mustScan(t, c, "/", inspect.Limits{Rate: 20})
		if took := time.Since(began); took < 3*time.Second || took > 6*time.Second {
			t.Errorf("some 84 requests at 20 a second took %v", took)
		}
	})
}

func TestScan_shows_what_it_can_not_read(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		contender(t, c, "/open", "")
		contender(t, c, "/half", "")
		closed := contender(t, c, "/half", "", hidden())
		mustCreate(t, c, "/secret", "", hidden())
		checkUnread(t, mustScan(t, c, "/", inspect.Limits{}), closed)
		if _, err := inspect.Read(t.Context(), c, "/secret"); !errors.Is(err, framework.ErrNoAuth) {
			t.Errorf("Read of a directory that may not be read: %v", err)
		}
	})
}

// checkUnread checks the locks /open and /half, and what could not be read: /secret and a contender of
// /half.
func checkUnread(t *testing.T, s inspect.Snapshot, closed string) {
	t.Helper()
	if !slices.Equal(paths(s), []string{"/half", "/open"}) {
		t.Errorf("found %v", paths(s))
	}
	var unread []string
	for _, u := range s.Unread {
		unread = append(unread, u.Path)
		if !errors.Is(u.Err, framework.ErrNoAuth) {
			t.Errorf("%s: %v", u.Path, u.Err)
		}
	}
	slices.Sort(unread)
	if !slices.Equal(unread, []string{closed, "/secret"}) {
		t.Errorf("unread: %v", unread)
	}
	half, _ := s.Lock("/half")
	if half.Complete || len(half.Contenders) != 2 || half.Contenders[1].State != inspect.Waits {
		t.Errorf("/half: %s, complete %v", brief(half), half.Complete)
	}
}

func TestScan_ends_with_the_client(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		contender(t, c, "/open", "")
		must.OK(t, c.Close())
		if _, err := inspect.Scan(t.Context(), c, "/", inspect.Limits{}); !errors.Is(err, framework.ErrClosed) {
			t.Errorf("scan of a closed client: %v", err)
		}
	})
}

// TestScan_below_a_chroot: there a directory may be named as ZooKeeper's own.
func TestScan_below_a_chroot(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		mustCreate(t, e.client(t), "/app/zookeeper/"+guid+"lock-", "", framework.Ephemeral(), framework.Sequential())
		below := e.client(t, framework.WithNamespace("app"))
		if _, ok := mustScan(t, below, "/", inspect.Limits{}).Lock("/zookeeper"); !ok {
			t.Error("Scan shows no lock")
		}
		live := must.Get(inspect.Follow(below, "/", inspect.FollowLimits{}))(t)
		defer func() { _ = live.Close() }()
		for view := range live.Views(t.Context()) {
			if _, ok := view.Lock("/zookeeper"); ok {
				break
			}
			if view.State == inspect.Current {
				t.Fatal("Follow shows no lock")
			}
		}
	})
}

// TestErrorsNameThePathInTheEnsemble: their own texts do, too.
func TestErrorsNameThePathInTheEnsemble(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t, framework.WithNamespace("app"))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, read := inspect.Read(ended, c, "/locks/a")
		_, scan := inspect.Scan(ended, c, "/locks/a", inspect.Limits{})
		for what, err := range map[string]error{"read": read, "scan": scan} {
			if want := "inspect: " + what + " /app/locks/a: "; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want it to begin with %q", what, err, want)
			}
		}
	})
}
