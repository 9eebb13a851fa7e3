// Package trace writes holds in Chrome's trace format, which Perfetto reads.
package trace

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"time"
)

// A Hold is a time for which a contender held a lock.
type Hold struct {
	Lock  string // its path
	Name  string // of the contender
	Owner string // "" if it is not known
	Fence string
	From  time.Time
	To    time.Time // the present, for a contender that holds
}

// An event is one of Chrome's trace format.
type event struct {
	Name  string            `json:"name"`
	Phase string            `json:"ph"`
	PID   int               `json:"pid"`
	TID   int               `json:"tid"`
	Start int64             `json:"ts,omitempty"`  // µs
	Took  int64             `json:"dur,omitempty"` // µs
	Args  map[string]string `json:"args,omitempty"`
}

// Write writes the holds, a row per lock, in the order of the paths.
func Write(w io.Writer, holds []Hold) error {
	events := []event{{Name: "process_name", Phase: "M", PID: 1, Args: map[string]string{"name": "locks"}}}
	holds = slices.Clone(holds)
	slices.SortStableFunc(holds, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Lock, b.Lock), a.From.Compare(b.From))
	})
	lane := 0
	for i, h := range holds {
		if i == 0 || h.Lock != holds[i-1].Lock {
			lane++
			events = append(events, event{
				Name: "thread_name", Phase: "M", PID: 1, TID: lane, Args: map[string]string{"name": h.Lock},
			})
		}
		events = append(events, h.event(lane))
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}

func (h Hold) event(lane int) event {
	e := event{
		Name: h.Name, Phase: "X", PID: 1, TID: lane,
		Start: h.From.UnixMicro(), Took: max(time.Millisecond, h.To.Sub(h.From)).Microseconds(),
		Args: map[string]string{"fence": h.Fence},
	}
	if h.Owner != "" {
		e.Args["owner"] = h.Owner
	}
	return e
}
