package query

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/form"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkversion"
)

// The problems of servers.
const (
	syncProblem     inspect.Problem = "sync"     // the leader is slow, or does not answer
	serverProblem   inspect.Problem = "server"   // a server is out of reach, or has no quorum
	ensembleProblem inspect.Problem = "ensemble" // the servers are no ensemble
	versionProblem  inspect.Problem = "version"  // of the servers' software
	busyProblem     inspect.Problem = "busy"     // many requests are outstanding at a server

	connectionProblem inspect.Problem = "connection" // no session

	// knownFaultsProblem is that of faults of the servers' version. No release is without them, so a
	// finding of it decides no exit code.
	knownFaultsProblem inspect.Problem = "known-faults"
)

const (
	slowSync  = time.Second
	busy      = 100             // outstanding requests
	clockSlop = 2 * time.Second // the Date of HTTP has whole seconds
)

// checkServers asks each server how it is. It needs no session, so it works without a quorum. The second
// result is what is wrong.
func (d *doctor) checkServers(ctx context.Context, c *framework.Client) ([]serverInfo, []inspect.Finding) {
	if !d.servers {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.app.Settings().Timeout)
	defer cancel()
	addrs := c.Servers()
	all, faults := make([]serverInfo, len(addrs)), make([][]inspect.Finding, len(addrs))
	var asking sync.WaitGroup
	for i, addr := range addrs { // one after another, those that do not answer would leave no time for the others
		asking.Go(func() { all[i], faults[i] = d.ask(ctx, addr) })
	}
	asking.Wait()
	var known []serverInfo
	for i, s := range all {
		if s.known() {
			known = append(known, s)
			faults[i] = append(faults[i], ofServer(s)...)
		}
	}
	return all, slices.Concat(append(faults, ofEnsemble(known), knownFaults(known))...)
}

// noConnection returns the finding of a client that got no session.
func noConnection(err error, servers []serverInfo) inspect.Finding {
	advice := "No server serves. Start servers, until a majority of the ensemble's runs."
	switch {
	case len(servers) == 0:
		advice = "See whether a majority of the ensemble's servers runs."
	case slices.ContainsFunc(servers, serverInfo.serves):
		advice = "A server serves, so see the network, the credentials, and the server's log."
	}
	return inspect.NewFinding(inspect.Error, connectionProblem, "", "no session, so the locks can't be read: "+err.Error(), advice)
}

// checkSync times a sync, which the leader answers.
func (d *doctor) checkSync(ctx context.Context, c *framework.Client) []inspect.Finding {
	ctx, cancel := context.WithTimeout(ctx, d.app.Settings().Timeout)
	defer cancel()
	began := time.Now()
	err := c.Sync(ctx, "/")
	took := time.Since(began)
	if err != nil {
		return []inspect.Finding{inspect.NewFinding(inspect.Error, syncProblem, "", "the leader does not answer: "+err.Error(), "See the servers' logs.")}
	}
	if took > slowSync {
		return []inspect.Finding{inspect.NewFinding(inspect.Warning, syncProblem, "", fmt.Sprintf("a sync took %v", took.Round(time.Millisecond)),
			"The leader or the network to it is slow: see its disk and its load.")}
	}
	return nil
}

// ofServer returns what is wrong with one server.
func ofServer(s serverInfo) []inspect.Finding {
	var found []inspect.Finding
	warn := func(problem inspect.Problem, text, advice string) {
		found = append(found, inspect.NewFinding(inspect.Warning, problem, s.addr, text, advice))
	}
	if s.outstanding >= busy {
		warn(busyProblem, fmt.Sprintf("%d requests are outstanding", s.outstanding), "See its disk and its load, and what the clients send.")
	}
	if s.mode == "read-only" {
		warn(serverProblem, "it is read-only: it has no quorum", "Start the other servers, or mend the network between them.")
	}
	if v, err := zkversion.Parse(s.release()); err == nil && v.Compare(zkversion.Version{Major: 3, Minor: 6}) < 0 {
		warn(versionProblem, "it runs ZooKeeper "+s.release()+", which docent does not support", "Upgrade it to ZooKeeper 3.6 or newer.")
	}
	if off := s.clockOff; off.Abs() > clockSlop {
		how := "ahead of"
		if off < 0 {
			how = "behind"
		}
		warn(inspect.ClocksDiffer, fmt.Sprintf("its clock is %v %s this host's", off.Abs().Round(time.Second), how),
			"Ages that docent shows are wrong by that. Leases are not affected. Set the clocks.")
	}
	return found
}

// ofEnsemble returns what is wrong with the servers taken together.
func ofEnsemble(all []serverInfo) []inspect.Finding {
	var found []inspect.Finding
	byVersion, versions := map[string][]string{}, []string{}
	byMode := map[string][]string{}
	for _, s := range all {
		if release := s.release(); release != "" {
			if byVersion[release] == nil {
				versions = append(versions, release)
			}
			byVersion[release] = append(byVersion[release], s.addr)
		}
		byMode[s.mode] = append(byMode[s.mode], s.addr)
	}
	if len(versions) > 1 {
		var parts []string
		for _, v := range versions {
			parts = append(parts, fmt.Sprintf("%s (%s)", v, strings.Join(byVersion[v], ", ")))
		}
		found = append(found, inspect.NewFinding(inspect.Warning, versionProblem, "", "the servers run different versions: "+strings.Join(parts, ", "), "Complete the upgrade."))
	}
	if leaders := byMode["leader"]; len(leaders) > 1 {
		found = append(found, inspect.NewFinding(inspect.Error, ensembleProblem, "", "several servers lead: "+strings.Join(leaders, ", "),
			"Look again. If it remains, the addresses are of several ensembles, whose locks do not exclude each other."))
	}
	if alone := byMode["standalone"]; len(alone) > 0 && len(all) > 1 {
		found = append(found, inspect.NewFinding(inspect.Error, ensembleProblem, "", strings.Join(alone, ", ")+": standalone, so part of no ensemble with the other addresses",
			"Correct the addresses: locks of several ensembles do not exclude each other."))
	}
	return found
}

// knownFaults returns a finding for each version of the servers that has known faults which docent can't help. A
// version that is not ZooKeeper's has none.
func knownFaults(all []serverInfo) []inspect.Finding {
	addrs, versions := map[zkversion.Version][]string{}, []zkversion.Version{}
	for _, s := range all {
		build, _, _ := strings.Cut(s.version, ",")
		v, err := zkversion.Parse(build)
		if err != nil {
			continue
		}
		if addrs[v] == nil {
			versions = append(versions, v)
		}
		addrs[v] = append(addrs[v], s.addr)
	}
	var found []inspect.Finding
	for _, v := range versions {
		if f, helpless := knownFaultsOf(v); helpless > 0 {
			f.Text = fmt.Sprintf("ZooKeeper %v (%s) has known faults that concern locks: %s", v, strings.Join(addrs[v], ", "), f.Text)
			found = append(found, f)
		}
	}
	return found
}

// knownFaultsOf returns the finding of the version, and how many of its faults docent can't help. Its details have
// these first.
func knownFaultsOf(v zkversion.Version) (f inspect.Finding, helpless int) {
	f = inspect.Finding{Severity: inspect.Info, Problem: knownFaultsProblem, Advice: "No release mends them."}
	var minded []string
	for _, fault := range v.Faults() {
		if fault.Minded == "" {
			f.Details = append(f.Details, fault.String())
		} else {
			minded = append(minded, fault.String())
		}
		if len(fault.Fixed) > 0 {
			f.Advice = "Upgrade the servers. A distributor's package may have a fix that its version does not show."
		}
	}
	helpless = len(f.Details)
	f.Text = fmt.Sprintf("%d that docent can't help, %d that it is safe from", helpless, len(minded))
	f.Details = append(f.Details, minded...)
	return f, helpless
}

// writeServers writes a row for each server that was asked.
func (d *doctor) writeServers(all []serverInfo) error {
	var rows [][]string
	for _, s := range all {
		row := []string{cli.Safe(s.addr), cli.Safe(s.mode), "-", "-"}
		if s.known() {
			row[2], row[3] = cli.Safe(s.release()), strconv.Itoa(s.outstanding)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil
	}
	return d.app.Table([]string{"SERVER", "STATE", "VERSION", "OUTSTANDING"}, rows)
}

// serversForm returns the form of the servers in JSON.
func serversForm(all []serverInfo) []form.Server {
	var servers []form.Server
	for _, s := range all {
		servers = append(servers, form.Server{Address: s.addr, State: s.mode, Version: s.release(), Outstanding: s.outstanding})
	}
	return servers
}
