package execute

import (
	"fmt"
	"net/url"
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
	envHeld    = "DOCENT_HELD"
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
	held := append(strings.Fields(app.Getenv(envHeld)), j.heldEntries(c)...)
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

// heldEntries returns the form of the paths in DOCENT_HELD: servers, '|', the path as the ensemble knows
// it, escaped, and "|read" for the read side of a lock.
func (j *job) heldEntries(c *framework.Client) []string {
	entries := make([]string, len(j.paths))
	for i, path := range j.paths {
		entries[i] = strings.Join(c.Servers(), ",") + "|" + url.QueryEscape(c.AbsolutePath(path))
		if j.kind == heldRead {
			entries[i] += "|" + heldRead
		}
	}
	return entries
}

// heldRead marks the read side of a lock in DOCENT_HELD. It does not exclude another reader.
const heldRead = "read"

// outerHolds returns the first of the job's paths that an outer exec holds on the same ensemble so that
// this one would wait for it, or "". Two lists of servers are taken for one ensemble if they share a
// server.
func (j *job) outerHolds(held string, c *framework.Client) string {
	for i, entry := range j.heldEntries(c) {
		inner := strings.Split(entry, "|")
		for entry := range strings.FieldsSeq(held) {
			outer := strings.Split(entry, "|")
			if len(outer) < 2 || outer[1] != inner[1] || !share(strings.Split(outer[0], ","), strings.Split(inner[0], ",")) {
				continue
			}
			if len(outer) == 2 || len(inner) == 2 {
				return j.paths[i]
			}
		}
	}
	return ""
}

func share(a, b []string) bool {
	return slices.ContainsFunc(a, func(server string) bool { return slices.Contains(b, server) })
}

// ownerOf returns the owner of the lock. Nested execs have one party.
func ownerOf(app *cli.App, name string) (lock.Owner, error) {
	if outer := app.Getenv(envParty); outer != "" {
		return lock.NewOwnerOfParty(outer, name)
	}
	return lock.NewOwner(name), nil
}
