package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
)

// A serverInfo is what a server said about itself.
type serverInfo struct {
	addr        string
	version     string // with the build
	mode        string // standalone, leader, follower, observer, read-only; or one of the states below
	outstanding int
	clockOff    time.Duration // how far its clock is ahead of this host's; 0 if unknown
}

// The states of servers that have no mode.
const (
	unreachable  = "unreachable"
	withoutVotes = "no-quorum"
	unclear      = "unknown" // it answers, and not what was asked
)

// known reports whether the server said what it is.
func (s serverInfo) known() bool {
	return s.mode != "" && s.mode != unreachable && s.mode != withoutVotes && s.mode != unclear
}

// serves reports whether the server may accept sessions.
func (s serverInfo) serves() bool { return s.known() && s.mode != "read-only" || s.mode == unclear }

// release returns the version without the build: 3.8.0.
func (s serverInfo) release() string {
	release, _, _ := strings.Cut(s.version, "-")
	return release
}

// ask asks the server by srvr, and by its AdminServer if --admin-port has its port.
func (d *doctor) ask(ctx context.Context, addr string) (serverInfo, []inspect.Finding) {
	config, err := d.app.Settings().TLSConfig()
	if err != nil {
		return serverInfo{addr: addr, mode: unclear}, []inspect.Finding{inspect.NewFinding(inspect.Error, serverProblem, addr, err.Error(), "Correct the settings of TLS.")}
	}
	answer, err := fourLetters(ctx, addr, "srvr", config)
	info := parseSrvr(addr, answer)
	var found []inspect.Finding
	if !info.known() {
		fault, state := faultOf(addr, answer, err)
		found = append(found, fault)
		info.mode = state
	}
	if d.adminPort == 0 || err != nil {
		return info, found
	}
	admin, err := askAdmin(ctx, addr, d.adminPort)
	switch {
	case err != nil:
		found = append(found, inspect.NewFinding(inspect.Info, serverProblem, addr, "its AdminServer does not answer: "+err.Error(),
			"See admin.enableServer and admin.serverPort in its configuration."))
	case !info.known() && admin.known():
		return admin, nil // no other answer is needed
	}
	info.clockOff = admin.clockOff
	return info, found
}

// faultOf returns what is wrong with an answer to srvr that has no mode, and the server's state.
func faultOf(addr, answer string, err error) (f inspect.Finding, state string) {
	fault := func(severity inspect.Severity, text, advice string) inspect.Finding {
		return inspect.NewFinding(severity, serverProblem, addr, text, advice)
	}
	switch {
	case err != nil:
		return fault(inspect.Error, "it can't be reached: "+err.Error(), "Start the server, or correct the address."), unreachable
	case strings.Contains(answer, "not in the whitelist"):
		return fault(inspect.Info, "it does not answer srvr", "To have it checked, set 4lw.commands.whitelist=srvr there, or use --admin-port."), unclear
	case strings.Contains(answer, "not currently serving requests"):
		return fault(inspect.Error, "it serves no requests: it has no quorum", "Start the other servers, or mend the network between them."), withoutVotes
	}
	line, _, _ := strings.Cut(answer, "\n")
	return fault(inspect.Warning, "it gives no answer that docent knows: "+line, "See whether the address is a ZooKeeper server's."), unclear
}

// parseSrvr returns what the answer to srvr says.
func parseSrvr(addr, answer string) serverInfo {
	s := serverInfo{addr: addr}
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Zookeeper version":
			s.version = value
		case "Mode":
			s.mode = value
		case "Outstanding":
			s.outstanding, _ = strconv.Atoi(value) // 0 for what is no number
		}
	}
	return s
}

// askAdmin asks the server's AdminServer, whose answers have the time.
func askAdmin(ctx context.Context, addr string, port int) (serverInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return serverInfo{}, err
	}
	url := "http://" + net.JoinHostPort(host, strconv.Itoa(port)) + "/commands/srvr"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return serverInfo{}, err
	}
	began := time.Now()
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return serverInfo{}, err
	}
	middle := began.Add(time.Since(began) / 2)
	info, err := parseAdmin(addr, reply)
	if date, fault := http.ParseTime(reply.Header.Get("Date")); fault == nil {
		info.clockOff = date.Sub(middle.Truncate(time.Second))
	}
	return info, errors.Join(err, reply.Body.Close())
}

func parseAdmin(addr string, reply *http.Response) (serverInfo, error) {
	if reply.StatusCode != http.StatusOK {
		return serverInfo{}, fmt.Errorf("HTTP status %s", reply.Status)
	}
	var answer struct {
		Version  string `json:"version"`
		ReadOnly bool   `json:"read_only"`
		Stats    struct {
			State       string `json:"server_state"`
			Outstanding int    `json:"outstanding_requests"`
		} `json:"server_stats"`
	}
	if err := json.NewDecoder(io.LimitReader(reply.Body, maxAnswer)).Decode(&answer); err != nil {
		return serverInfo{}, err
	}
	mode := answer.Stats.State
	if answer.ReadOnly {
		mode = "read-only"
	}
	return serverInfo{addr: addr, version: answer.Version, mode: mode, outstanding: answer.Stats.Outstanding}, nil
}
