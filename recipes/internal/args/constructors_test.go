package args_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/recipes/semaphore"
)

// Faults that several constructors report.
const (
	noClient = "client: must not be nil"
	noOption = "option 0: must not be nil"
	noACL    = "ACL: must have at least one entry"
)

// A refusal is the error of a constructor, and the faults that it is to name.
type refusal struct {
	err    error
	faults []string
}

// refused is a refusal of a call whose result doesn't matter.
func refused[T any](_ T, err error) func(faults ...string) refusal {
	return func(faults ...string) refusal { return refusal{err, faults} }
}

// TestConstructorsNameEveryFault gives each constructor several bad arguments at once. Each fault has a line.
func TestConstructorsNameEveryFault(t *testing.T) {
	t.Parallel()
	c := must.Get(framework.NewClient("127.0.0.1:1"))(t) // it is never asked
	defer c.Close()
	revocation, badLoss := recipes.WithRevocation(func(*lock.Lease) {}), recipes.WithLossPolicy(7)
	const lossFault = "loss policy LossPolicy(7): must be AtDeadline or OnSuspend"
	most := int64(math.MaxInt32) // a variable, for an int of 32 bits
	keys := make([]string, 10_001)
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	all := []refusal{
		refused(lock.NewMutex(nil, "/a//b", nil, badLoss, recipes.WithACL()))(
			"lock: new mutex /a//b: "+noClient, `"/a//b": must not contain //`, noOption, lossFault, noACL),
		refused(lock.NewRWMutex(nil, "rw/", recipes.WithRevocation(nil), recipes.WithQueuePosition(nil), recipes.WithACL()))(
			"lock: new read/write lock rw/: "+noClient, `invalid path "rw/": must start with /`,
			"revocation: the function must not be nil", "queue position: the function must not be nil", noACL),
		refused(lock.NewUnfairMutex(nil, "x//", nil))("lock: new unfair mutex x//: "+noClient, `"x//"`, noOption),
		refused(lock.NewSemaphoreMutex(nil, "x//", nil))("lock: new semaphore mutex x//: "+noClient, `"x//"`, noOption),
		refused(lock.NewUnfairMutex(c, "/x", revocation, recipes.WithQueuePosition(func(int) {})))("revocation", "queue position"),
		refused(lock.NewLocal(nil, 0))("mutex: must not be nil", "max 0: must be at least 1"),
		refused(barrier.New(nil, "bad", nil, recipes.WithACL()))("barrier: new barrier bad: "+noClient, `"bad"`, noOption, noACL),
		refused(barrier.NewDouble(nil, "bad", 0, nil, recipes.WithACL()))(
			"barrier: new double barrier bad: "+noClient, `"bad"`, noOption, noACL, "members 0: must be at least 1"),
		refused(counter.New(nil, "bad", nil, recipes.WithACL()))("counter: new counter bad: "+noClient, `"bad"`, noOption, noACL),
		refused(counter.NewValue(nil, "/", model.Codec[int]{}, counter.WithInt32()))(
			"counter: new value /: "+noClient, "root", "codec: must have", "WithInt32"),
		refused(discovery.New[string](c, "services", nil, discovery.WithClass(""), recipes.WithACL(), discovery.WithUnreadable(nil)))(
			"discovery: new services: invalid path", noOption, "class: must not be empty", noACL, "unreadable: the function must not be nil"),
		refused(group.New(c, "members", nil, recipes.WithSettle(-1), recipes.WithACL()))(
			"group: new members: "+noOption, "settle -1ns: must not be negative", noACL),
		refused(leader.New(nil, "relative", nil, leader.WithFormat(9), badLoss, recipes.WithACL(), recipes.WithRevocation(nil)))(
			"leader: new election relative: "+noClient, `path "relative"`, noOption, "format Format(9): must be Latch or Selector",
			lossFault, noACL, "revocation: the function must not be nil"),
		refused(node.New(c, "n", nil, nil, recipes.WithACL()))("node: new n: "+noOption, noACL, `invalid path "n"`),
		refused(node.New(c, "/", nil))("path: must not be the root"),
		refused(node.New(c, "/n", nil, node.WithTTL(time.Microsecond)))("TTL 1µs: must be between 1ms and"),
		refused(node.New(c, "/n", nil, node.WithTTL(35*365*24*time.Hour)))("must be between 1ms and"),
		refused(node.New(c, "/n", nil, node.Sequential(), node.WithTTL(time.Second)))("Sequential, Persistent and WithTTL: must not be combined"),
		refused(node.New(c, "/n", make([]byte, 1<<20)))(framework.ErrTooLarge.Error()),
		refused(node.NewValue(nil, "relative", 1, model.Codec[int]{}, node.Persistent(), node.Sequential()))(
			noClient, "codec: must have Encode and Decode", "must not be combined", `"relative"`),
		refused(node.NewValue(nil, "/n", 1, model.Codec[int]{Encode: model.JSON[int]().Encode}))(noClient, "codec"),
		refused(partition.New(c, "/x", nil, nil, partition.WithID("a/b"), recipes.WithSettle(-1), recipes.WithACL(), badLoss))(
			"0 keys: must be from 1 to 10000", noOption, `id "a/b": must not be empty or contain a slash`,
			"settle -1ns: must not be negative", noACL, lossFault),
		refused(partition.New(c, "/x", keys))("10001 keys: must be from 1 to 10000"),
		refused(partition.New(c, "/x", []string{"a", "b", "a"}))(`key "a": must be given once`),
		refused(schedule.New(nil, "job", schedule.WithWait(0), schedule.WithHistory(501), recipes.WithACL(), nil))(
			"schedule: new schedule job: "+noClient, "path", "wait 0s: must be positive", "history 501: must be from 1 to 500",
			noACL, "option 3: must not be nil"),
		refused(semaphore.New(nil, "bad", 0, nil, recipes.WithACL(), recipes.WithQueuePosition(nil), semaphore.WithPermitsAt("worse"), badLoss))(
			"semaphore: new semaphore bad: "+noClient, `"bad"`, "permits 0: must be between 1 and 2147483647", noOption, noACL,
			"queue position: the function", "permits at", lossFault),
		refused(semaphore.New(c, "/s", -1))("permits -1"),
		refused(semaphore.New(c, "/s", int(most+1)))("permits"),
		refused(semaphore.New(c, "/s", 1, semaphore.WithPermitsAt("/s/leases")))("/s/leases"),
		refused(semaphore.New(c, "/s", 1, semaphore.WithPermitsAt("/s/leases/number")))("/s/leases/number"),
	}
	for _, path := range []string{"", "relative", "/", "/a//b", "/a/", "/a/./b", "/a/../b", "/a\x00b", "/a\x1fb"} {
		all = append(all, refused(lock.NewMutex(c, path))("lock: new mutex"))
	}
	for _, r := range all {
		recipetest.Says(t, r.err, r.faults...)
		if lines := strings.Count(fmt.Sprint(r.err), "\n") + 1; lines < len(r.faults) {
			t.Errorf("error\n%v\nhas fewer than %d lines", r.err, len(r.faults))
		}
	}
}
