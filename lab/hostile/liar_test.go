package hostile_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// The tests of this file have a server that tells one lie in each reply to one kind of request, for as
// long as the session lasts. Where a loop reads again because two replies contradict each other, such a
// server keeps it going: without a pause it would ask as fast as the network allows.

// Limits of a call at a server that lies.
const (
	lieLasts = 20 * time.Second
	// mostReplies are two hundred a second. A loop that pauses needs fewer. One without a pause has no
	// bound, because virtual time does not pass for it.
	mostReplies = 4000
	stopReplies = 5000 // from then on the server is slow, so that the run ends
)

// liePath is what the server lies about, with all below it.
const liePath = "/lie"

// A lie changes the reply to a request of the path; body is what follows the reply's head.
type lie struct {
	name    string
	opcodes []proto.Opcode
	reply   func(path string, opcode proto.Opcode, code proto.Code, body []byte) (proto.Code, []byte)
	event   int32 // the kind of an event of the path that follows each reply; 0 for none
}

var creates = []proto.Opcode{proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL}

// lies returns all lies.
func lies() []lie {
	all := []lie{
		{name: "a create made another path", opcodes: creates, reply: func(_ string, opcode proto.Opcode, code proto.Code, body []byte) (proto.Code, []byte) {
			return code, otherText(body, func(path string) string {
				if i := strings.LastIndexByte(path, '/'); i >= 0 {
					return path[:i+1] + "other" + path[i+1:]
				}
				return path
			})
		}},
		{name: "a create made a child of another directory", opcodes: creates, reply: func(_ string, _ proto.Opcode, code proto.Code, body []byte) (proto.Code, []byte) {
			return code, otherText(body, func(string) string { return "/elsewhere/lock-0000000000" })
		}},
		{name: "a transaction made other paths", opcodes: []proto.Opcode{proto.OpMulti}, reply: func(_ string, _ proto.Opcode, code proto.Code, body []byte) (proto.Code, []byte) {
			return code, []byte(strings.ReplaceAll(string(body), liePath+"/", "/els/"))
		}},
		{name: "no children", opcodes: []proto.Opcode{proto.OpGetChildren2}, reply: children(func([]string) []string { return nil })},
		{name: "a child more", opcodes: []proto.Opcode{proto.OpGetChildren2}, reply: children(func(names []string) []string {
			return append(names, "more", "_c_00000000-0000-0000-0000-000000000000-lock-0000000000", "lease-0000000000", "leases", "ready")
		})},
		{name: "other children", opcodes: []proto.Opcode{proto.OpGetChildren2}, reply: children(func(names []string) []string {
			for i := range names {
				names[i] = "other" + names[i]
			}
			return names
		})},
		{name: "other data", opcodes: []proto.Opcode{proto.OpGetData}, reply: func(_ string, _ proto.Opcode, code proto.Code, body []byte) (proto.Code, []byte) {
			return code, otherText(body, func(string) string { return "x" })
		}},
		{name: "no data", opcodes: []proto.Opcode{proto.OpGetData}, reply: func(_ string, _ proto.Opcode, code proto.Code, body []byte) (proto.Code, []byte) {
			return code, otherText(body, func(string) string { return "" })
		}},
	}
	all = append(all, lies64()...)
	for kind := range int32(4) {
		all = append(all, lie{name: fmt.Sprintf("an event of kind %d after each reply", kind+1), event: kind + 1, opcodes: append(slices.Clone(creates),
			proto.OpExists, proto.OpGetData, proto.OpGetChildren2, proto.OpSetData, proto.OpDelete, proto.OpAddWatch)})
	}
	for name, opcodes := range map[string][]proto.Opcode{
		"create": creates, "delete": {proto.OpDelete}, "exists": {proto.OpExists}, "get": {proto.OpGetData}, "set": {proto.OpSetData},
		"children": {proto.OpGetChildren2}, "sync": {proto.OpSync}, "multi": {proto.OpMulti}, "addWatch": {proto.OpAddWatch},
	} {
		for _, code := range []proto.Code{
			proto.CodeRuntimeInconsistency, -4, proto.CodeMarshallingError, proto.CodeUnimplemented, -7, proto.CodeBadArguments,
			proto.CodeNoNode, proto.CodeNoAuth, proto.CodeBadVersion, proto.CodeNoChildrenForEphemerals, proto.CodeNodeExists, proto.CodeNotEmpty,
			proto.CodeSessionExpired, -113, proto.CodeInvalidACL, proto.CodeSessionMoved, proto.CodeNotReadOnly, proto.CodeQuotaExceeded, proto.CodeThrottled,
		} {
			all = append(all, lie{name: fmt.Sprintf("%s fails with %d", name, code), opcodes: opcodes, reply: func(_ string, opcode proto.Opcode, _ proto.Code, _ []byte) (proto.Code, []byte) {
				if opcode == proto.OpMulti {
					e := proto.NewEncoder()
					for _, head := range []struct {
						op   proto.Opcode
						done bool
						code proto.Code
					}{{proto.OpError, false, code}, {proto.OpError, true, -1}} {
						e.Int32(int32(head.op))
						e.Bool(head.done)
						e.Int32(int32(head.code))
						if !head.done {
							e.Int32(int32(code))
						}
					}
					return 0, e.Body()
				}
				return code, nil
			}})
		}
		if opcodes[0] == proto.OpDelete || opcodes[0] == proto.OpSync {
			all = append(all, lie{name: name + " always succeeds", opcodes: opcodes, reply: func(path string, opcode proto.Opcode, _ proto.Code, _ []byte) (proto.Code, []byte) {
				if opcode == proto.OpSync {
					return 0, proto.AppendString(nil, path)
				}
				return 0, nil
			}})
		}
	}
	slices.SortFunc(all, func(a, b lie) int { return strings.Compare(a.name, b.name) })
	return all
}

// lies64 returns the lies about the fields of a Stat.
func lies64() (all []lie) {
	for _, f := range []struct {
		name     string
		at, size int // from the start of the Stat
	}{{"czxid", 0, 8}, {"mzxid", 8, 8}, {"version", 32, 4}, {"cversion", 36, 4}, {"ephemeralOwner", 44, 8}, {"pzxid", 60, 8}} {
		n := byte(0)
		all = append(all, lie{
			name: "another " + f.name + " each time", opcodes: append(slices.Clone(creates), proto.OpExists, proto.OpGetData, proto.OpSetData, proto.OpGetChildren2),
			reply: func(_ string, _ proto.Opcode, code proto.Code, body []byte) (proto.Code, []byte) {
				if at := len(body) - proto.StatSize; code == 0 && at >= 0 {
					body = slices.Clone(body)
					n++
					body[at+f.at+f.size-1] += n
				}
				return code, body
			},
		})
	}
	return all
}

// otherText replaces the text that a body begins with.
func otherText(body []byte, other func(string) string) []byte {
	d := proto.NewDecoder(body)
	text := d.String()
	if d.Err() != nil {
		return body
	}
	return append(proto.AppendString(nil, other(text)), d.Rest()...)
}

func children(other func([]string) []string) func(string, proto.Opcode, proto.Code, []byte) (proto.Code, []byte) {
	return func(_ string, _ proto.Opcode, code proto.Code, body []byte) (proto.Code, []byte) {
		d := proto.NewDecoder(body)
		names := d.Strings()
		if d.Err() != nil || code != 0 {
			return code, body
		}
		e := proto.NewEncoder()
		e.Strings(other(names))
		e.Raw(d.Rest())
		return code, e.Body()
	}
}

// A liar is a server that tells a lie.
type liar struct {
	*server
	lie lie
}

// reply returns what the client gets in place of the reply to a request of the path.
func (l *liar) reply(rq asked, frame []byte) []byte {
	if !slices.Contains(l.lie.opcodes, rq.opcode) || rq.opcode != proto.OpMulti && !strings.HasPrefix(rq.path+"/", liePath+"/") {
		return frame
	}
	if l.lie.event != 0 {
		time.Sleep(10 * time.Millisecond) // a client reads as often as it gets events
		return slices.Concat(frame, eventFrame(l.lie.event, 3, rq.path))
	}
	const head = proto.LengthSize + proto.ReplyHeadSize
	code, body := l.lie.reply(rq.path, rq.opcode, proto.Code(int32(binary.BigEndian.Uint32(frame[head-4:]))), frame[head:])
	changed := append(slices.Clone(frame[:head-4]), be32(int32(code))...)
	return framed(append(changed, body...)[proto.LengthSize:])
}

// lieCalls returns what a client does at a server that lies. Each goes on for as long as ctx lasts, or
// ends with an error.
func lieCalls() map[string]func(ctx context.Context, c *framework.Client) error {
	const path = liePath + "/x"
	all := map[string]func(ctx context.Context, c *framework.Client) error{
		"CreateOrSet": func(ctx context.Context, c *framework.Client) error {
			_, err := c.CreateOrSet(ctx, path, nil, framework.WithParents())
			return err
		},
		"CreateProtected": func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create(ctx, path, nil, framework.Ephemeral(), framework.Protected(), framework.Sequential(), framework.WithParents())
			return err
		},
		"CreateAll": func(ctx context.Context, c *framework.Client) error {
			op := framework.OpCreate(path+"-", nil, framework.Ephemeral(), framework.Protected(), framework.Sequential(), framework.WithParents())
			_, err := c.CreateAll(ctx, op, op)
			return err
		},
		"CreateAtEpoch": func(ctx context.Context, c *framework.Client) error {
			var epoch int32
			var st framework.Stat
			_, err := c.Create(ctx, path, nil, framework.Ephemeral(), framework.KnownByData(), framework.WithEpoch(&epoch), framework.WithParents(), framework.StatTo(&st))
			if err == nil {
				err = c.Delete(ctx, path, framework.AtEpoch(epoch), framework.CreatedBy(st.Czxid), framework.Guaranteed())
			}
			return err
		},
		"DeleteTree": func(ctx context.Context, c *framework.Client) error { return c.DeleteTree(ctx, liePath) },
		"DeleteGuaranteed": func(ctx context.Context, c *framework.Client) error {
			return c.Delete(ctx, liePath+"/a/b", framework.Guaranteed())
		},
		"Cache": func(ctx context.Context, c *framework.Client) error {
			kept, err := cache.New(c, liePath)
			if err != nil {
				return err
			}
			defer kept.Close()
			<-ctx.Done()
			return nil
		},
		"Node": func(ctx context.Context, c *framework.Client) error {
			n, err := node.New(c, path, []byte("data"))
			if err != nil {
				return err
			}
			<-ctx.Done()
			return n.Close(context.Background())
		},
		"Group": func(ctx context.Context, c *framework.Client) error {
			g, err := group.New(c, path)
			if err != nil {
				return err
			}
			if _, err := g.Join("member", nil); err != nil {
				return err
			}
			<-ctx.Done()
			return g.Close(context.Background())
		},
		"Discovery": func(ctx context.Context, c *framework.Client) error {
			r, err := discovery.New[string](c, path)
			if err != nil {
				return err
			}
			_, err = r.Register(discovery.Instance[string]{Name: "service", ID: "id"})
			_, watched := r.Watch("service")
			<-ctx.Done()
			return errors.Join(err, watched, r.Close(context.Background()))
		},
		"Partition": func(ctx context.Context, c *framework.Client) error {
			p, err := partition.New(c, path, []string{"a", "b"})
			if err != nil {
				return err
			}
			return p.Run(ctx, func(ctx context.Context, _ string, _ *lease.Lease) error { <-ctx.Done(); return ctx.Err() })
		},
		"Election": func(ctx context.Context, c *framework.Client) error {
			e, err := leader.New(c, path)
			if err != nil {
				return err
			}
			return e.Run(ctx, func(ctx context.Context, _ *lease.Lease) error { <-ctx.Done(); return ctx.Err() })
		},
		"Observe": func(ctx context.Context, c *framework.Client) error {
			e, err := leader.New(c, liePath+"/held")
			if err != nil {
				return err
			}
			for range e.Observe(ctx) { //nolint:revive // until ctx ends
			}
			return nil
		},
		"Follow": func(ctx context.Context, c *framework.Client) error {
			l, err := inspect.Follow(c, liePath+"/held", inspect.FollowLimits{})
			if err != nil {
				return err
			}
			<-ctx.Done()
			return l.Close()
		},
		"Scan": func(ctx context.Context, c *framework.Client) error {
			_, err := inspect.Scan(ctx, c, liePath, inspect.Limits{})
			return err
		},
		"Barrier": func(ctx context.Context, c *framework.Client) error {
			b, err := barrier.New(c, liePath+"/a")
			if err != nil {
				return err
			}
			return b.Wait(ctx)
		},
		"Double": func(ctx context.Context, c *framework.Client) error {
			b, err := barrier.NewDouble(c, path, 1)
			if err != nil {
				return err
			}
			l, err := b.Enter(ctx)
			if err != nil {
				return err
			}
			return b.Leave(ctx, l)
		},
		"Counter": func(ctx context.Context, c *framework.Client) error {
			n, err := counter.New(c, path)
			if err != nil {
				return err
			}
			_, err = n.Add(ctx, 1)
			return err
		},
		"Value": func(ctx context.Context, c *framework.Client) error {
			v, err := counter.NewValue(c, liePath+"/a", model.Bytes())
			if err != nil {
				return err
			}
			for range v.All(ctx) { //nolint:revive // until ctx ends
			}
			return nil
		},
	}
	locker := func(name string, make func(c *framework.Client, path string) (lock.Locker, error)) {
		for form, path := range map[string]string{"": path, " of another holder's": liePath + "/held"} {
			all[name+form] = func(ctx context.Context, c *framework.Client) error {
				l, err := make(c, path)
				if err != nil {
					return err
				}
				_, tried := l.TryLock(ctx)
				_, err = l.Lock(ctx)
				return errors.Join(tried, err)
			}
		}
	}
	locker("Mutex", func(c *framework.Client, path string) (lock.Locker, error) { return lock.NewMutex(c, path) })
	locker("UnfairMutex", func(c *framework.Client, path string) (lock.Locker, error) { return lock.NewUnfairMutex(c, path) })
	locker("SemaphoreMutex", func(c *framework.Client, path string) (lock.Locker, error) { return lock.NewSemaphoreMutex(c, path) })
	locker("Multi", func(c *framework.Client, path string) (lock.Locker, error) {
		a, err := lock.NewMutex(c, path+"1")
		b, err2 := lock.NewMutex(c, path)
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		return lock.NewMulti(a, b)
	})
	locker("RWMutex", func(c *framework.Client, path string) (lock.Locker, error) {
		rw, err := lock.NewRWMutex(c, path)
		if err != nil {
			return nil, err
		}
		return rw.Read(), nil
	})
	all["Downgrade"] = func(ctx context.Context, c *framework.Client) error {
		rw, err := lock.NewRWMutex(c, path)
		if err != nil {
			return err
		}
		if _, err := rw.Write().Lock(ctx); err != nil {
			return err
		}
		_, err = rw.Read().Lock(ctx)
		return err
	}
	for form, path := range map[string]string{"": path, " of another holder's": liePath + "/permits"} {
		all["Semaphore"+form] = func(ctx context.Context, c *framework.Client) error {
			s, err := semaphore.New(c, path, 2)
			if err != nil {
				return err
			}
			_, tried := s.TryAcquire(ctx, 2)
			_, err = s.Acquire(ctx, 2)
			return errors.Join(tried, err)
		}
	}
	return all
}

// shareOfLies is which share of the lies a plain go test tells: one of so many. HOSTILE_LIES=1 tells all,
// which takes minutes.
const shareOfLies = 48

// TestAServerThatLies has each call at a server that tells each lie. The call has to end with its
// context, and must not ask without a pause.
func TestAServerThatLies(t *testing.T) {
	share := int(setting(t, "HOSTILE_LIES", shareOfLies))
	offset, n := rand.IntN(share), 0
	for name, call := range lieCalls() {
		for i, l := range lies() {
			if (i+len(name))%share != offset {
				continue
			}
			n++
			t.Run(name+"/"+l.name, func(t *testing.T) {
				t.Parallel()
				limit := time.AfterFunc(longestRun, func() { panic(t.Name() + " spins") })
				defer limit.Stop()
				synctest.Test(t, func(t *testing.T) { lieTo(t, l, call) })
			})
		}
	}
	t.Logf("%d lies: share %d of %d", n, offset, share)
}

// A create whose reply names a znode that it can't have made has an unknown outcome. A protected one is
// found by its id.
func TestACreateThatMadeAnotherZnode(t *testing.T) {
	const path = liePath + "/x"
	protected := []framework.CreateOption{framework.Ephemeral(), framework.Protected(), framework.Sequential()}
	for name, tt := range map[string]struct {
		do   func(ctx context.Context, c *framework.Client) ([]string, error)
		want error
	}{
		"Create": {func(ctx context.Context, c *framework.Client) ([]string, error) {
			made, err := c.Create(ctx, path, nil)
			return []string{made}, err
		}, framework.ErrUnknownOutcome},
		"Create Sequential": {func(ctx context.Context, c *framework.Client) ([]string, error) {
			made, err := c.Create(ctx, path, nil, framework.Sequential())
			return []string{made}, err
		}, framework.ErrUnknownOutcome},
		"Create Protected": {func(ctx context.Context, c *framework.Client) ([]string, error) {
			made, err := c.Create(ctx, path, nil, protected...)
			return []string{made}, err
		}, nil},
		"Txn": {func(ctx context.Context, c *framework.Client) ([]string, error) {
			_, err := c.Txn(ctx, framework.OpCreate(path, nil))
			return nil, err
		}, framework.ErrUnknownOutcome},
		"CreateAll": {func(ctx context.Context, c *framework.Client) ([]string, error) {
			return c.CreateAll(ctx, framework.OpCreate(path, nil, protected...))
		}, nil},
	} {
		for _, l := range lies() {
			if !strings.Contains(l.name, " made ") {
				continue
			}
			t.Run(name+"/"+l.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					lieTo(t, l, func(ctx context.Context, c *framework.Client) error {
						made, err := tt.do(ctx, c)
						if concerned := slices.Contains(l.opcodes, proto.OpMulti) == (name == "Txn" || name == "CreateAll"); concerned && !errors.Is(err, tt.want) {
							t.Errorf("error %v, want %v", err, tt.want)
						}
						for _, one := range made {
							if err == nil && !strings.HasPrefix(one, liePath+"/") {
								t.Errorf("made %q", one)
							}
						}
						return err
					})
				})
			})
		}
	}
}

func lieTo(t *testing.T, l lie, call func(ctx context.Context, c *framework.Client) error) {
	srv := &liar{&server{Server: zkserver.Run(t, zkenv.DrawVersion(t)...), script: new(script), mute: make(map[proto.Opcode]bool)}, l}
	good := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.Dial)))(t)
	defer func() { must.OK(t, good.Close()) }()
	must.OK(t, good.AwaitConnected(t.Context()))
	must.Get(good.Create(t.Context(), liePath+"/a/b", []byte("0"), framework.WithParents()))(t)
	held := must.Get(must.Get(lock.NewMutex(good, liePath+"/held"))(t).Lock(t.Context()))(t)
	defer func() { _ = held.Release(context.Background()) }()
	permits := must.Get(must.Get(semaphore.New(good, liePath+"/permits", 2))(t).Acquire(t.Context(), 1))(t)
	defer func() { _ = permits.Release(context.Background()) }()
	c := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(srv.dial)))(t)
	must.OK(t, c.AwaitConnected(t.Context()))
	srv.mu.Lock()
	srv.frames, srv.lies = 0, srv.reply
	srv.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), lieLasts)
	defer cancel()
	start := time.Now()
	err := call(ctx, c)
	if took := time.Since(start); took > lieLasts+longestEnd {
		t.Errorf("returned after %v: %v", took, err)
	}
	srv.mu.Lock()
	frames := srv.frames
	srv.lies = nil
	srv.mu.Unlock()
	if frames > mostReplies {
		t.Errorf("%d replies within %v: %v", frames, time.Since(start), err)
	}
	_ = c.Close() // it may have had no way to clean up
}
