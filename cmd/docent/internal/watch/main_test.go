package watch_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/query"
	"github.com/docent-go/docent/cmd/docent/internal/watch"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) {
	apptest.Main(func() { zktest.Main(m) }, append(query.Commands(), watch.New)...)
}

// noon is the time of the tests' views.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// queue returns a mutex with these contenders, the holder first. A ! after a name asks the contender to
// release. Each was created a minute before the next.
func queue(path string, names ...string) inspect.Lock {
	l := inspect.Lock{Path: path, Kind: inspect.Mutex, Permits: 1, Complete: true}
	for i, text := range names {
		name, revoked := strings.CutSuffix(text, "!")
		number := int64(name[0])
		c := inspect.Contender{
			Znode: path + "/" + name, Sequence: number, State: inspect.Holds, Side: inspect.Alone, By: inspect.Docent,
			Session: 7, Czxid: number, Created: noon.Add(time.Duration(number-'z') * time.Minute), Revoked: revoked,
			Meta: &lease.Metadata{Version: 1, Host: "host", PID: 17, Owner: name, Party: name},
		}
		if i > 0 {
			c.State, c.WaitsFor = inspect.Waits, []string{l.Contenders[i-1].Znode}
		}
		l.Contenders = append(l.Contenders, c)
	}
	return l
}

func viewOf(state inspect.ViewState, at time.Time, locks ...inspect.Lock) inspect.View {
	slices.SortFunc(locks, func(a, b inspect.Lock) int { return strings.Compare(a.Path, b.Path) })
	return inspect.View{Snapshot: inspect.Snapshot{At: at, Locks: locks, Complete: true}, State: state, Since: at}
}
