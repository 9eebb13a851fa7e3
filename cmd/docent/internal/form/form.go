// Package form has the JSON that docent writes about locks: schema docent/v1. Within v1 fields are
// added, and never changed or removed. schema.json describes it.
package form

import (
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/recipes/schedule"
)

// Version names the version of the form.
const Version = "docent/v1"

// Schema is the JSON Schema of a [Snapshot].
//
//go:embed schema.json
var Schema []byte

// A Snapshot is the locks that were found.
type Snapshot struct {
	Schema   string    `json:"schema"`
	At       string    `json:"at"`
	Ensemble string    `json:"ensemble"`
	Complete bool      `json:"complete"`
	Locks    []Lock    `json:"locks"`
	Unread   []Unread  `json:"unread"`
	Findings []Finding `json:"findings,omitempty"`
	Servers  []Server  `json:"servers,omitempty"` // of doctor
}

// A Server is what a server said when it was asked without a session.
type Server struct {
	Address     string `json:"address"`
	State       string `json:"state"`
	Version     string `json:"version,omitempty"`
	Outstanding int    `json:"outstanding,omitempty"` // requests
}

// A Lock is a lock with its contenders.
type Lock struct {
	Path       string      `json:"path"`
	Kind       string      `json:"kind"`
	Permits    *int        `json:"permits"` // null if unknown, or without a bound
	Contenders []Contender `json:"contenders"`
	Runs       []Run       `json:"runs,omitempty"`    // of a schedule
	Unknown    bool        `json:"unknown,omitempty"` // the data are not a schedule's
	Foreign    []string    `json:"foreign,omitempty"`
	Mixed      bool        `json:"mixed,omitempty"`
	Complete   bool        `json:"complete"`
}

// A Run is one of the last runs of a schedule. Its times but the slot are by the clock of its host.
type Run struct {
	Slot  string  `json:"slot"`
	State string  `json:"state"`
	From  string  `json:"from"`
	To    *string `json:"to"` // null while it runs, and if its host did not see the end
	Host  string  `json:"host"`
	PID   int     `json:"pid"`
	Owner string  `json:"owner"`
	Fence string  `json:"fence"`
}

// A Contender is a holder or a waiter. 64-bit numbers are text, because JavaScript has no such numbers.
type Contender struct {
	Znode       string   `json:"znode"`
	Turn        *string  `json:"turn"`
	State       string   `json:"state"`
	Side        string   `json:"side"`
	Sequence    int64    `json:"sequence"`
	By          string   `json:"by"`
	Session     string   `json:"session"`
	Fence       string   `json:"fence"`
	Created     string   `json:"created"`
	Revoked     bool     `json:"revoked"`
	Host        *string  `json:"host"`
	PID         *int     `json:"pid"`
	Owner       *string  `json:"owner"`
	Party       *string  `json:"party"`
	Label       *string  `json:"label"`
	Traceparent *string  `json:"traceparent"`
	Data        []byte   `json:"data_base64"` // null unless --data asks for it
	WaitsFor    []string `json:"waits_for"`
	AnyOf       bool     `json:"any_of,omitempty"`
}

// Unread is a path that could not be read.
type Unread struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// A Finding is one thing that is wrong.
type Finding struct {
	Severity  string   `json:"severity"`
	Problem   string   `json:"problem"`
	Path      string   `json:"path,omitempty"`
	Text      string   `json:"text"`
	Details   []string `json:"details,omitempty"`
	Advice    string   `json:"advice,omitempty"`
	Strength  string   `json:"strength,omitempty"`
	Confirmed bool     `json:"confirmed,omitempty"`
	Parties   []string `json:"parties,omitempty"`
	Edges     []Edge   `json:"edges,omitempty"`
}

// An Edge says that one contender waits for another one, by their znodes.
type Edge struct {
	Lock    string `json:"lock"`
	Waiter  string `json:"waiter"`
	Blocker string `json:"blocker"`
	Direct  bool   `json:"direct"`
}

// Of returns the form of the snapshot. data says whether to show the contenders' data.
func Of(s inspect.Snapshot, ensemble string, data bool) Snapshot {
	f := Snapshot{
		Schema: Version, At: Instant(s.At), Ensemble: ensemble, Complete: s.Complete, Locks: []Lock{}, Unread: []Unread{},
	}
	for _, l := range s.Locks {
		f.Locks = append(f.Locks, lockOf(l, data))
	}
	for _, u := range s.Unread {
		f.Unread = append(f.Unread, Unread{u.Path, zktel.ErrorType(u.Err)})
	}
	return f
}

func lockOf(l inspect.Lock, data bool) Lock {
	f := Lock{
		Path: l.Path, Kind: string(l.Kind), Permits: optional(l.Permits), Contenders: []Contender{}, Foreign: l.Foreign,
		Mixed: l.Mixed, Unknown: l.Unknown, Complete: l.Complete,
	}
	for _, r := range l.Runs {
		f.Runs = append(f.Runs, runOf(r))
	}
	for _, c := range l.Contenders {
		f.Contenders = append(f.Contenders, ContenderOf(c, data))
	}
	return f
}

func runOf(r schedule.Run) Run {
	f := Run{
		Slot: Instant(r.Slot), State: string(r.State), From: Instant(r.From),
		Host: r.Host, PID: r.PID, Owner: r.Owner, Fence: strconv.FormatInt(r.Fence, 10),
	}
	if !r.To.IsZero() {
		f.To = optional(Instant(r.To))
	}
	return f
}

// ContenderOf returns the form of the contender. data says whether to show its data.
func ContenderOf(c inspect.Contender, data bool) Contender {
	f := Contender{
		Znode: c.Znode, Turn: optional(c.Turn), State: string(c.State), Side: string(c.Side), Sequence: c.Sequence,
		By: string(c.By), Session: fmt.Sprintf("0x%x", uint64(c.Session)), Fence: strconv.FormatInt(c.Czxid, 10),
		Created: Instant(c.Created), Revoked: c.Revoked, Label: optional(c.Label), WaitsFor: c.WaitsFor, AnyOf: c.AnyOf,
	}
	if f.WaitsFor == nil {
		f.WaitsFor = []string{}
	}
	if m := c.Meta; m != nil {
		f.Host, f.PID, f.Owner = optional(m.Host), optional(m.PID), optional(m.Owner)
		f.Party, f.Traceparent = optional(m.Party), optional(m.Traceparent)
	}
	if data {
		f.Data = c.Data
	}
	return f
}

// FindingsOf returns the form of the findings.
func FindingsOf(found []inspect.Finding) []Finding {
	all := []Finding{}
	for _, f := range found {
		one := Finding{
			Severity: string(f.Severity), Problem: string(f.Problem), Path: f.Path, Text: f.Text, Details: f.Details, Advice: f.Advice,
			Strength: string(f.Strength), Confirmed: f.Confirmed,
		}
		for _, p := range f.Parties {
			one.Parties = append(one.Parties, p.String())
		}
		for _, e := range f.Edges {
			one.Edges = append(one.Edges, Edge{e.Lock, e.Waiter.Znode, e.Blocker.Znode, e.Direct})
		}
		all = append(all, one)
	}
	return all
}

// optional returns nil for the zero value.
func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Instant returns the time as JSON has it.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
