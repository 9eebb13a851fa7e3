package execute

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// The variables that CMD gets. If there are several locks, DOCENT_LOCK, DOCENT_NODE and DOCENT_FENCE
// have a line for each, in the same order.
const (
	envLock    = "DOCENT_LOCK"
	envKind    = "DOCENT_KIND"
	envNode    = "DOCENT_NODE"
	envFence   = "DOCENT_FENCE"
	envSession = "DOCENT_SESSION"
	envParty   = "DOCENT_PARTY"
	envHeld    = cli.HeldVariable

	envGuard = "DOCENT_GUARD" // docent's own: its parent is its guard, whose process id it has
)

// environment returns CMD's environment: docent's, without what leads to credentials, and with the
// lock's variables.
func (j *job) environment(app *cli.App, c *framework.Client, l *lease.Lease, party string) []string {
	own := []string{envLock, envKind, envNode, envFence, envSession, envParty, envHeld, envGuard}
	removed := append(own, cli.AuthVariables()...)
	env := slices.DeleteFunc(slices.Clone(app.Env), func(variable string) bool {
		key, _, _ := strings.Cut(variable, "=")
		return slices.Contains(removed, key)
	})
	var paths, nodes, fences []string
	for _, member := range members(l) {
		paths = append(paths, member.Path())
		nodes = append(nodes, member.Node())
		fences = append(fences, strconv.FormatInt(member.Fence(), 10))
	}
	lines := func(list []string) string { return strings.Join(list, "\n") }
	held := append(strings.Fields(app.Getenv(envHeld)), j.holds(c, l)...)
	return append(env,
		envLock+"="+lines(paths), envKind+"="+j.kind, envNode+"="+lines(nodes), envFence+"="+lines(fences),
		fmt.Sprintf("%s=0x%x", envSession, c.Session().ID), envParty+"="+party, envHeld+"="+lines(held))
}

// members returns the leases of a Multi, or the lease itself.
func members(l *lease.Lease) []*lease.Lease {
	if list := l.Members(); len(list) > 0 {
		return list
	}
	return []*lease.Lease{l}
}

// fences returns the fences of the lease, separated by commas.
func fences(l *lease.Lease) string {
	var list []string
	for _, member := range members(l) {
		list = append(list, strconv.FormatInt(member.Fence(), 10))
	}
	return strings.Join(list, ",")
}

// holds returns the lines of DOCENT_HELD for the leases.
func (j *job) holds(c *framework.Client, l *lease.Lease) []string {
	var lines []string
	for _, member := range members(l) {
		lines = append(lines, cli.Held{
			Path: c.AbsolutePath(member.Path()), Node: c.AbsolutePath(member.Node()), Fence: member.Fence(), Session: c.Session().ID, Read: j.kind == kindRead,
		}.String())
	}
	return lines
}

// kindRead is the kind of the read side of a lock.
const kindRead = "read"

// refuseOuter returns an error if an outer exec holds one of the job's locks, and waits for this one.
func (j *job) refuseOuter(ctx context.Context, app *cli.App, c *framework.Client) error {
	if j.reenter {
		return nil
	}
	for _, path := range j.paths {
		held, err := app.OuterHold(ctx, c, path, j.kind == kindRead)
		if err != nil {
			return err
		}
		if held {
			return cli.Usage(fmt.Errorf("%s: an outer docent exec holds this lock and waits for this one; --reenter waits all the same", c.AbsolutePath(path)))
		}
	}
	return nil
}

// ownerOf returns the owner of the lock. Nested execs have one party.
func ownerOf(app *cli.App, name string) (lock.Owner, error) {
	if outer := app.Getenv(envParty); outer != "" {
		return lock.NewOwnerOfParty(outer, name)
	}
	return lock.NewOwner(name), nil
}
