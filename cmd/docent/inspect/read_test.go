package inspect_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
)

func TestRead_of_a_free_path(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		mustCreate(t, c, "/empty", "7")
		for _, path := range []string{"/missing", "/empty", "/"} {
			l := mustRead(t, c, path)
			if l.Kind != "" || len(l.Contenders) != 0 || l.Path != path || !l.Complete {
				t.Errorf("%s: %+v", path, l)
			}
		}
	})
}

func TestRead_shows_an_unfair_mutex_without_metadata(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		m := must.Get(lock.NewUnfairMutex(c, "/a/role", recipes.WithoutMetadata()))(t)
		held := must.Get(m.Lock(t.Context()))(t)
		defer func() { _ = held.Release(t.Context()) }()
		read := mustRead(t, c, "/a/role")
		scanned, _ := mustScan(t, c, "/", inspect.Limits{}).Lock("/a/role")
		for _, l := range []inspect.Lock{read, scanned} {
			if got, want := brief(l), "exclusive 1; le holds exclusive unknown"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

func TestRead_shows_a_request_to_release(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		m := must.Get(lock.NewMutex(c, "/a"))(t)
		held := must.Get(m.Lock(t.Context()))(t)
		must.OK(t, lock.Revoke(t.Context(), c, held.Node()))
		got := mustRead(t, c, "/a").Contenders[0]
		if !got.Revoked || got.RevokedAt.IsZero() || got.By != inspect.OtherLibrary || got.Label != "" || got.Data != nil {
			t.Errorf("%+v", got)
		}
		if got.Czxid != held.Fence() {
			t.Errorf("czxid %d, want the fence %d", got.Czxid, held.Fence())
		}
	})
}

// hidden is an ACL under which the client may create and delete, and not read.
func hidden() framework.CreateOption {
	return framework.WithACL(acl.Entry{Perms: acl.Create | acl.Delete | acl.Admin, Scheme: "world", ID: "anyone"})
}

// TestArguments: what is wrong is said before a request, with the name of the function.
func TestArguments(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, read := inspect.Read(ctx, nil, "no/path")
	_, scan := inspect.Scan(ctx, nil, "no/path", inspect.Limits{Rate: -1})
	_, follow := inspect.Follow(nil, "no/path", inspect.FollowLimits{})
	_, confirm := inspect.Confirm(ctx, nil, inspect.Snapshot{})
	for name, err := range map[string]error{"read no/path": read, "scan no/path": scan, "follow no/path": follow, "confirm /": confirm} {
		if err == nil || !strings.HasPrefix(err.Error(), "inspect: "+name+": client: must not be nil") {
			t.Errorf("%s: error %v", name, err)
		}
		if name != "confirm /" && !errors.Is(err, framework.ErrInvalidPath) {
			t.Errorf("%s: error %v does not name the path", name, err)
		}
	}
	if scan == nil || !strings.Contains(scan.Error(), "rate -1: must not be negative") {
		t.Errorf("scan: error %v does not name the rate", scan)
	}
}
