package sim_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/fault"
)

// Any client that may write to a znode can change its data and its version. Its client must know it as its
// own nevertheless, and no other client may take it for its own. A write to an instance or to a member of a
// partition changes what these say, so the operator leaves those alone.

// foreignKinds are writes of the operator. strike draws them, and not newFates.
func foreignKinds() []*faultKind {
	return []*faultKind{
		{name: "write to a znode", spares: true, begin: (*environment).writeToSome},
		{name: "write to a new znode whose client gets no reply", begin: (*environment).writeToNext},
	}
}

// writable reports whether the operator may write to the znode at the path. It needs env.mu.
func (env *environment) writable(path string) bool {
	return !slices.Contains([]string{"", "discovery", "member"}, env.placeOf(path)) && env.clientOf(env.nodes[path].owner) != nil
}

// writeToSome has the operator write to one to three znodes of clients.
func (env *environment) writeToSome(r *rand.Rand, span time.Duration) func() {
	env.mu.Lock()
	defer env.mu.Unlock()
	var paths []string
	for path := range env.nodes {
		if env.writable(path) {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, func(a, b string) int { // their names are drawn by their owners
		return cmp.Or(cmp.Compare(env.nodes[a].czxid, env.nodes[b].czxid), strings.Compare(a, b))
	})
	r.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, path := range paths[:min(len(paths), 1+r.IntN(3))] {
		env.writeTo(path, span, foreignKinds()[0].name)
	}
	return nil
}

// writeToNext has the server drop the reply to a create, and the operator write to the znode before its
// client looks for it.
func (env *environment) writeToNext(r *rand.Rand, span time.Duration) func() {
	t := env.plan.targets[r.IntN(len(env.plan.targets))]
	rule := fault.Rule{Op: fault.Create, Path: env.plan.root + t.path + "**", Action: fault.DropReply}
	env.report("fault", "adds the rule", rule)
	h := env.srv.Rules().Add(rule)
	env.mu.Lock()
	defer env.mu.Unlock()
	env.writeNext = func(path string) {
		if env.placeOf(path) == t.kind {
			env.writeNext = nil
			env.writeTo(path, span, foreignKinds()[1].name)
		}
	}
	return func() {
		h.Release()
		env.mu.Lock()
		defer env.mu.Unlock()
		env.writeNext = nil
	}
}

// writeTo has the operator write to the znode at the path, whosever it is by then. It needs env.mu.
func (env *environment) writeTo(path string, span time.Duration, fault string) {
	env.tasks.Go(func() { // ends with its context at the latest; environment.run waits for it
		ctx, cancel := context.WithTimeout(env.ctx, max(span, time.Second))
		defer cancel()
		_, err := env.operator.Set(ctx, path, []byte("written by somebody"), framework.AnyVersion)
		env.report("operator", "has written to "+path, err)
		if err == nil {
			env.count("fault "+fault, 1)
		}
	})
}
