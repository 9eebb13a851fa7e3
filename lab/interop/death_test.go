package interop_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/peers"
	"github.com/docent-go/docent/testing/zktest"
)

// A process that is killed leaves its locks to the end of its session: no
// earlier, and soon after.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		library *library
		kinds   []kind
	}{
		{curator, exclusives},
		{kazoo, []kind{renamed(mutexes, "lock-renamed"), renamed(writers, "write-renamed")}},
	} {
		t.Run(c.library.name, func(t *testing.T) {
			t.Parallel()
			driver := c.library.own(t)
			var (
				granted []<-chan outcome
				fences  []int64
				waiting []*native
			)
			for _, k := range c.kinds {
				path := pathOf(t) + "-" + k.name
				holder := newActorOf(t, c.library, driver, shortSession).contender(k.foreign, path)
				mustLock(t, holder)
				ours := k.native(t, path)
				granted = append(granted, queueUp(t, ours.client, path, ours)...)
				fences, waiting = append(fences, holder.fence), append(waiting, ours)
			}
			for i := range granted {
				mustWait(t, granted[i], "docent's lock beside a live holder")
			}
			killed := time.Now()
			driver.kill(t)
			for i, k := range c.kinds {
				// The server last received something from the holder a third of its session
				// before, at the most.
				took := mustGet(t, granted[i], k.name).at.Sub(killed)
				if took < shortSession/3 || took > generous/2 {
					t.Errorf("%s: granted %v after the holder was killed, with a session of %v", k.name, took, shortSession)
				}
				if fence := waiting[i].entry().fence; fence <= fences[i] {
					t.Errorf("%s: fence %d after the dead holder's %d, want a greater one", k.name, fence, fences[i])
				}
			}
		})
	}
}

// A process may be stopped for longer than its session, and not know when it continues. It can't
// disturb the holder of that time, not even by its release.
func TestStoppedHolder(t *testing.T) {
	t.Parallel()
	driver := curator.own(t)
	type scene struct {
		kind    kind
		stopped *foreigner
		ours    *native
		other   *foreigner
		granted []<-chan outcome // ours, then other's
	}
	var scenes []scene
	for _, k := range exclusives {
		path := pathOf(t) + "-" + k.name
		s := scene{
			kind:    k,
			stopped: newActorOf(t, curator, driver, shortSession).contender(k.foreign, path),
			ours:    k.native(t, path), other: k.foreigner(t, curator, path),
		}
		mustLock(t, s.stopped)
		s.granted = queueUp(t, s.ours.client, path, s.ours, s.other)
		scenes = append(scenes, s)
	}
	must.OK(t, peers.Stop(driver.cmd.Process))
	for _, s := range scenes {
		mustGet(t, s.granted[0], s.kind.name)
		if fence := s.ours.entry().fence; fence <= s.stopped.fence {
			t.Errorf("%s: fence %d after the stopped holder's %d, want a greater one", s.kind.name, fence, s.stopped.fence)
		}
	}
	must.OK(t, peers.Continue(driver.cmd.Process))
	for _, s := range scenes {
		_ = s.stopped.unlock() // whether Curator calls that an error is its affair
		mustWait(t, s.granted[1], "the third, beside docent's "+s.kind.name)
		if err := s.ours.lease.Err(); err != nil {
			t.Errorf("%s: lease %v, want it to stand", s.kind.name, err)
		}
		mustUnlock(t, s.ours)
		mustGet(t, s.granted[1], "the third's "+s.kind.name)
	}
}

// renamed returns the kind under its name in another driver.
func renamed(k kind, foreign string) kind {
	k.foreign = foreign
	return k
}

// deadManRole makes a run of the test binary a test that dies, with a driver that
// can't notice.
const deadManRole = "INTEROP_DIES"

func TestNoDriverOutlivesItsTest(t *testing.T) {
	if os.Getenv(deadManRole) != "" {
		dieWithAFrozenDriver(t)
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoDriverOutlivesItsTest$")
	cmd.Env = append(os.Environ(), deadManRole+"=1")
	out, err := cmd.Output()
	if err == nil {
		t.Fatal("the child ended well, want it dead")
	}
	_, after, ok := strings.Cut(string(out), "driver ")
	if !ok {
		t.Fatalf("the child says %q, want its driver's process id", out)
	}
	driver := must.Get(os.FindProcess(must.Get(strconv.Atoi(strings.TrimSpace(after)))(t)))(t)
	zktest.Eventually(t, generous, "the driver is gone", func() bool { return driver.Signal(syscall.Signal(0)) != nil })
}

func dieWithAFrozenDriver(t *testing.T) {
	t.Helper()
	d := must.Get(startDriver([]string{"/bin/sh", "-c", "echo '* ready'; while read -r _; do :; done"}))(t)
	must.OK(t, d.awaitReady())
	must.OK(t, peers.Stop(d.cmd.Process))
	fmt.Printf("driver %d\n", d.cmd.Process.Pid)
	self := must.Get(os.FindProcess(os.Getpid()))(t)
	_ = self.Kill()
	select {}
}
