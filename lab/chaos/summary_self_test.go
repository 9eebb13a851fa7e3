package chaos_test

import (
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/lab/history"
)

// A run that had nothing to find fails, whatever it lacked.
func TestAVacuousRunIsFound(t *testing.T) {
	t.Parallel()
	full := func() summary {
		s := summary{
			length: time.Minute, faults: append(many("one", 18), done{name: deposedName}, done{name: outageName}), models: make(map[string]*tally), stops: 1,
			succession: history.LossReport{Succeeded: 1}, registers: history.Registers{Accepted: 1, Late: map[string]int{storeRegister + "/a": 1, "/registers/a": 1}},
		}
		for _, m := range allModels() {
			s.models[m.Name] = &tally{handovers: 1, losses: 1}
		}
		s.counts = map[string]int{refusedMixed: 1}
		return s
	}
	for _, c := range []struct {
		lacks  string
		change func(s *summary)
		want   int
	}{
		{"nothing", func(*summary) {}, 0},
		{"a fault in three seconds", func(s *summary) { s.faults = s.faults[1:] }, 1},
		{"a deposed leader", func(s *summary) { s.faults[18].name = cutName + "somewhere" }, 1},
		{"a cut between servers", func(s *summary) { s.faults[18].name = "one" }, 2},
		{"an outage", func(s *summary) { s.faults[19].name = "one" }, 1},
		{"contention for one kind of lock", func(s *summary) { s.models["multi"].handovers = 0 }, 1},
		{"losses of one kind, in a short run", func(s *summary) { s.models["multi"].losses = 0 }, 0},
		{"losses of one kind, in a long run", func(s *summary) {
			s.models["multi"].losses, s.length = 0, thorough
			s.faults = append(s.faults, many("one", 1000)...)
		}, 1},
		{"losses", func(s *summary) {
			for _, n := range s.models {
				n.losses = 0
			}
		}, 1},
		{"successors", func(s *summary) { s.succession.Succeeded = 0 }, 1},
		{"what workers check by themselves", func(s *summary) { clear(s.counts) }, 1},
		{"stopped holders", func(s *summary) { s.stops = 0 }, 1},
		{"writes", func(s *summary) { s.registers.Accepted = 0 }, 1},
		{"late writes to the store", func(s *summary) { delete(s.registers.Late, storeRegister+"/a") }, 1},
		{"late writes to the znode", func(s *summary) { delete(s.registers.Late, "/registers/a") }, 1},
	} {
		s := full()
		c.change(&s)
		if got := s.vacuity(); len(got) != c.want {
			t.Errorf("without %s: %q; want %d complaints", c.lacks, got, c.want)
		}
	}
}

func many(fault string, n int) []done { return slices.Repeat([]done{{name: fault}}, n) }
