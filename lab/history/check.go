package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A CheckResult is what porcupine says of one group of locks.
type CheckResult struct {
	Model      Model
	Group      string
	Operations int
	Result     porcupine.CheckResult // Ok, Illegal, or Unknown where the time did not do

	info    porcupine.LinearizationInfo
	history []porcupine.Operation
}

// OK reports whether the locks behaved as the model says.
func (v CheckResult) OK() bool { return v.Result == porcupine.Ok }

// Check has porcupine look at each group of the history, for no longer than limit each.
// A group whose model it does not know is an error.
func (h *History) Check(limit time.Duration) ([]CheckResult, error) {
	var verdicts []CheckResult
	for _, g := range h.groups() {
		m, ok := modelOf(g.model)
		if !ok {
			return nil, fmt.Errorf("history: group %s: model %q is not known", g.name, g.model)
		}
		v := CheckResult{Model: m, Group: g.name, Operations: len(g.ops), history: g.ops}
		v.Result = porcupine.CheckOperationsTimeout(m.porcupine(), g.ops, limit)
		if v.Result != porcupine.Ok { // once more, for the picture
			_, v.info = porcupine.CheckOperationsVerbose(m.porcupine(), g.ops, limit)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

// Save writes the group's history to the directory, as porcupine's picture (HTML) and as
// JSON, and returns the picture's path. It is for verdicts that are not OK.
func (v CheckResult) Save(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	base := filepath.Join(dir, v.Model.Name+strings.ReplaceAll(v.Group, "/", "_"))
	text, err := json.MarshalIndent(v.describe(), "", " ")
	if err != nil {
		return "", err
	}
	picture := base + ".html"
	return picture, errors.Join(
		os.WriteFile(base+".json", text, 0o644),
		porcupine.VisualizePath(v.Model.porcupine(), v.info, picture))
}

// A line is an operation for human eyes.
type line struct {
	Call, Return int64
	Operation    string
}

func (v CheckResult) describe() []line {
	var lines []line
	for _, op := range v.history {
		lines = append(lines, line{op.Call, op.Return, op.Input.(step).String()})
	}
	slices.SortFunc(lines, func(a, b line) int { return int(a.Call - b.Call) })
	return lines
}

// A group is the operations that are checked together.
type group struct {
	name, model string
	ops         []porcupine.Operation
	owners      map[string]int // their lines in the picture
}

func (h *History) groups() []*group {
	all := make(map[string]*group)
	of := func(r Record) *group {
		g := all[r.Group]
		if g == nil {
			g = &group{name: r.Group, model: r.Model, owners: make(map[string]int)}
			all[r.Group] = g
		}
		return g
	}
	for _, t := range h.Leases {
		if g := of(t.Grant); !t.stillborn() {
			g.add(t)
		}
	}
	for _, r := range h.Counts {
		of(r).append(step{kind: Counted, owner: r.Owner, count: r.Count}, r.Call, r.Return)
	}
	names := slices.Sorted(maps.Keys(all))
	groups := make([]*group, len(names))
	for i, name := range names {
		groups[i] = all[name]
	}
	return groups
}

// add adds the two operations of a tenure: it was granted, and it ended.
func (g *group) add(t *LeaseRecord) {
	s := step{kind: Granted, lease: t.Grant.Lease, owner: t.Grant.Owner, shared: t.Grant.Shared, stakes: t.Grant.Locks}
	g.append(s, t.Grant.Call, t.Grant.Return)
	s.kind = t.End
	from, to := t.span()
	g.append(s, from, to)
}

func (g *group) append(s step, call, ret int64) {
	line, ok := g.owners[s.owner]
	if !ok {
		line = len(g.owners)
		g.owners[s.owner] = line
	}
	g.ops = append(g.ops, porcupine.Operation{ClientId: line, Input: s, Call: call, Return: ret})
}
