package sim_test

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// In half of the schedules everything is below viewRoot, and each client has a view of its own kind.
// The paths that a client uses are the same in each view. The ensemble's paths are longer: the judges
// compare what the leader reports, without the root.

// viewOuter and viewInner are the elements of viewRoot. A client may have one by its chroot and the other
// by a namespace.
const (
	viewOuter, viewInner = "world", "inner"
	viewRoot             = "/" + viewOuter + "/" + viewInner
)

// A viewKind is how a client comes to its view.
type viewKind struct {
	name       string
	chroot     string // of the connect string
	option     string // the namespace of WithNamespace
	namespaces []string
	plain      bool // the client's locks are not made of its view, but of the client, with the ensemble's paths
}

// plainView is that of the clients of all other schedules.
var plainView = viewKind{name: "plain"}

// viewKinds are all views of viewRoot.
func viewKinds() []viewKind {
	return []viewKind{
		{name: "chroot", chroot: viewRoot},
		{name: "namespace", option: viewRoot[1:]},
		{name: "namespace in namespace", namespaces: []string{viewOuter, viewInner}},
		{name: "namespace in chroot", chroot: "/" + viewOuter, namespaces: []string{viewInner}},
		{name: "plain beside views", namespaces: []string{viewOuter, viewInner}, plain: true},
	}
}

// viewsMet are the counts of views that must not be 0 after many schedules.
func viewsMet() []string {
	var met []string
	for _, v := range append(viewKinds(), plainView) {
		met = append(met, "view: "+v.name)
	}
	return met
}

// drawViews puts half of the plans below viewRoot. The views are drawn from r, which draws nothing else.
func (p *plan) drawViews(r *rand.Rand) {
	rooted := r.IntN(2) == 0
	for i := range p.clients {
		p.clients[i].view = plainView
		if rooted {
			p.root, p.clients[i].view = viewRoot, pick(r, viewKinds()...)
		}
	}
}

// dialed makes a framework.Client with the view.
func (v viewKind) dialed(addr string, opts []framework.Option) (*framework.Client, error) {
	if v.option != "" {
		opts = append(opts, framework.WithNamespace(v.option))
	}
	f, err := framework.NewClient(addr+v.chroot, opts...)
	for _, ns := range v.namespaces {
		if err == nil {
			f, err = f.Namespace(ns)
		}
	}
	return f, err
}

// spelled returns the client and the path of a lock: with a plain client the path is the ensemble's.
func (c *client) spelled(f *framework.Client, path string) (*framework.Client, string) {
	if c.plan.view.plain {
		return f.Root(), viewRoot + path
	}
	return f, path
}

// unspelled returns the path of a lock or of its znode as it is in a view.
func unspelled(path string) string { return strings.TrimPrefix(path, viewRoot) }

// makeRoot creates the root of the schedule, and gives the operator its view.
func (env *environment) makeRoot() error {
	if env.plan.root == "" {
		return nil
	}
	if _, err := env.operator.Create(env.ctx, env.plan.root, nil, framework.WithParents()); err != nil {
		return err
	}
	view, err := env.operator.Namespace(env.plan.root[1:])
	env.operator = view
	return err
}

// inView returns the transaction with the paths that clients use. What is done outside their views is a
// violation of "own session only". It needs env.mu.
func (env *environment) inView(x zkserver.Transaction) zkserver.Transaction {
	if env.plan.root == "" {
		return x
	}
	x.Changes = slices.Clone(x.Changes)
	for i, c := range x.Changes {
		below, ok := strings.CutPrefix(c.Path, env.plan.root+"/")
		switch {
		case ok:
			x.Changes[i].Path = "/" + below
		case env.clientOf(x.By) != nil:
			env.violatedLocked(ownSession, "%s has changed %s, which is beside its view", env.clientOf(x.By).name, c.Path)
		}
	}
	return x
}
