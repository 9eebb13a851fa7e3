package goid_test

import (
	"iter"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/docent-go/docent/internal/goid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deep calls fn at the bottom of a stack that had to grow for it.
func deep(frames int, fn func() uint64) uint64 {
	var pad [256]byte
	if frames == 0 {
		return fn()
	}
	id := deep(frames-1, fn)
	runtime.KeepAlive(&pad)
	return id
}

func TestID_agrees_with_the_header(t *testing.T) {
	t.Parallel()
	const goroutines = 2000
	ids := make([]uint64, goroutines)
	var started, wg sync.WaitGroup
	started.Add(goroutines)
	for i := range ids {
		wg.Go(func() {
			ids[i] = goid.ID()
			started.Done()
			started.Wait() // so that all live at once
			if got := deep(i%200, goid.ID); got != ids[i] {
				t.Errorf("ID = %d at first, and %d where it is %d frames deep", ids[i], got, i%200)
			}
			if got := deep(i%20, goid.FromHeader); got != ids[i] {
				t.Errorf("ID = %d, and the header says %d", ids[i], got)
			}
			runtime.Gosched()
			if got := goid.ID(); got != ids[i] {
				t.Errorf("ID = %d at first and %d later", ids[i], got)
			}
		})
	}
	wg.Wait()

	seen := make(map[uint64]bool, goroutines)
	for _, id := range ids {
		if id == 0 || seen[id] {
			t.Fatalf("ID %d is zero or was given twice", id)
		}
		seen[id] = true
	}
}

func TestCoroutineHasAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	next, stop := iter.Pull(func(yield func([2]uint64) bool) {
		yield([2]uint64{goid.ID(), goid.FromHeader()})
	})
	defer stop()
	inside, _ := next()
	if outside := goid.ID(); inside[0] == outside || inside[0] != inside[1] {
		t.Errorf("ID = %d outside, and %d inside where the header says %d", outside, inside[0], inside[1])
	}
}

func TestChoice_of_the_header(t *testing.T) {
	t.Parallel()
	here := goid.FromHeader()
	tests := map[string]struct {
		fast func() uint64
		want func() uint64
	}{
		"a fast way that is right":                       {goid.FromRecord, goid.FromRecord},
		"a fast way that is always wrong":                {func() uint64 { return 0 }, goid.FromHeader},
		"a fast way that is right on one goroutine only": {func() uint64 { return here }, goid.FromHeader},
		"a fast way that is wrong on one goroutine only": {func() uint64 {
			if id := goid.FromHeader(); id != here {
				return id
			}
			return 0
		}, goid.FromHeader},
		"a fast way that is off by one": {func() uint64 { return goid.FromHeader() + 1 }, goid.FromHeader},
	}
	for name, tt := range tests {
		got := goid.Choose(tt.fast) // on this goroutine, whose number is here
		if reflect.ValueOf(got).Pointer() != reflect.ValueOf(tt.want).Pointer() {
			t.Errorf("%s: chose the other one", name)
		}
		if id := got(); id != here {
			t.Errorf("%s: ID = %d, want %d", name, id, here)
		}
	}
}

func TestFastPathIsTakenWithThisGoVersion(t *testing.T) {
	t.Parallel()
	got := goid.Choose(goid.FromRecord)
	if reflect.ValueOf(got).Pointer() != reflect.ValueOf(goid.FromRecord).Pointer() {
		t.Errorf("with %s the number is parsed from a stack trace: github.com/petermattis/goid does not know its layout", runtime.Version())
	}
}

func TestHeaderIsReadUnderEveryTracebackSetting(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"none", "single", "all", "system"} {
		cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^(TestID_agrees|TestChoice|TestFastPath)")
		cmd.Env = append(os.Environ(), "GOTRACEBACK="+setting, "GORACE=atexit_sleep_ms=0")
		if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), "--- PASS: Test") != 3 {
			t.Errorf("GOTRACEBACK=%s: %v\n%s", setting, err, out)
		}
	}
}
