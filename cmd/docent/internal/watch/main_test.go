package watch_test

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/watch"
	"github.com/docent-go/docent/recipes/inspect"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/zktest"
)

// programVariable makes the test binary docent itself.
const programVariable = "DOCENT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		app := &cli.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}
		os.Exit(app.Main(context.Background(), os.Args[1:], watch.New))
	}
	// The loop that os/signal starts at its first use must not belong to a test's bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	signal.Stop(signals)
	zktest.Main(m)
}

// A buffer may be read while it is written.
type buffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
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
	return inspect.View{Snapshot: inspect.Snapshot{At: at, Locks: locks, Complete: true}, State: state, Since: at}
}
