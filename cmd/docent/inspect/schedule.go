package inspect

import (
	"context"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/schedule"
)

// scheduleLock is the name of the znode, below a schedule's, of the host at work.
const scheduleLock = "lock"

// scheduleOf returns docent's schedule, whose data are its last runs.
func scheduleOf(dir Znode) (Lock, bool) {
	runs, err := schedule.ParseRuns(dir.Data)
	if !mayBeSchedule(dir) || err != nil || len(runs) == 0 {
		return Lock{}, false
	}
	l := Lock{Path: dir.Path, Kind: Schedule, Permits: 1, Runs: slices.Clone(runs)}
	fence := int64(0)
	if z, ok := dir.child(scheduleLock); ok {
		l.Contenders = []Contender{contenderOf(z, Contender{Side: Alone, State: Holds})}
		fence = z.Stat.Czxid
	}
	for i, r := range l.Runs {
		if r.State == schedule.Running && r.Fence != fence {
			l.Runs[i].State = schedule.Lost
		}
	}
	return l, true
}

// unknownScheduleOf returns a schedule whose data are not those of one. It has nothing else below its path.
func unknownScheduleOf(dir Znode) (Lock, bool) {
	other := slices.ContainsFunc(dir.Children, func(z Znode) bool {
		return z.name() != scheduleLock && z.name() != zkpath.Epoch(scheduleLock)
	})
	if !mayBeSchedule(dir) || other || len(dir.Data) == 0 {
		return Lock{}, false
	}
	return Lock{Path: dir.Path, Kind: Schedule, Unknown: true}, true
}

// mayBeSchedule reports whether the directory's children are those of a schedule.
func mayBeSchedule(dir Znode) bool {
	_, ok := dir.child(zkpath.Epoch(scheduleLock))
	return ok
}

// mayHoldRuns reports whether a znode's data may be a schedule's runs, by its Stat: a schedule has its lock's epoch
// below it, and at times the lock.
func mayHoldRuns(stat framework.Stat) bool {
	return stat.DataLength > 0 && stat.NumChildren > 0
}

// withRuns adds the data and the holder of a directory that may be a schedule's. Both are read in one request: a run
// without an end, and without its lock, is lost.
func (r *reader) withRuns(ctx context.Context, dir Znode) (Znode, error) {
	if dir.Data != nil || !mayBeSchedule(dir) {
		return dir, nil
	}
	holder := zkpath.Join(dir.Path, scheduleLock)
	read, err := r.read(ctx, []string{dir.Path, holder})
	if err != nil {
		return dir, err
	}
	dir.Data = read[dir.Path].Data
	dir.Children = slices.DeleteFunc(slices.Clone(dir.Children), func(z Znode) bool { return z.Path == holder })
	if z, ok := read[holder]; ok {
		dir.Children = append(dir.Children, z)
	}
	return dir, nil
}
