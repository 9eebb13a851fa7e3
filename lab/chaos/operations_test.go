package chaos_test

import (
	"context"
	"errors"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/lock"
)

// locks returns the errands with locks of all kinds.
func (w *worker) locks() []errand {
	pair := lock.NewOwner(w.Name + "/pair")
	paired := func(ctx context.Context, t task) { w.paired(ctx, t, pair) }
	return []errand{
		{"guarded", w.guarded, shortRest},
		{"exclusive", w.exclusive, shortRest},
		{"semaphore", w.semaphore, shortRest},
		{"reentrant", w.reentrant, shortRest},
		{"pair", paired, longRest},
		{"pair", paired, longRest},
		{"writer", w.writer, shortRest},
		{"mixed", w.mixed, shortRest},
		{"reader 1", w.reader, shortRest},
		{"reader 2", w.reader, shortRest},
		{"multi 1", w.multi, shortRest},
		{"multi 2", w.multi, shortRest},
	}
}

// sound returns what a constructor made. Its arguments are ours, so an error is a bug of the test.
func sound[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// once takes a lock that is not re-entered, holds and releases it.
func (w *worker) once(ctx context.Context, t task, e history.Entry, l lock.Locker) {
	ctx = lock.ContextWithOwner(ctx, lock.NewOwner(e.Owner))
	if h, err := w.take(ctx, t, e, l); err == nil {
		w.hold(h, t)
		release(h)
	}
}

func (w *worker) exclusive(ctx context.Context, t task) {
	path := w.path("exclusive")
	w.once(ctx, t, w.entry(history.Mutex(), path, t), sound(lock.NewUnfairMutex(w.client, path)))
}

func (w *worker) semaphore(ctx context.Context, t task) {
	path := w.path("semaphore")
	w.once(ctx, t, w.entry(history.Mutex(), path, t), sound(lock.NewSemaphoreMutex(w.client, path)))
}

// reentrant takes a mutex several times over and counts.
func (w *worker) reentrant(ctx context.Context, t task) {
	path := w.path("reentrant")
	m := sound(lock.NewMutex(w.client, path))
	e := w.entry(history.Reentrant(), path, t)
	ctx = lock.ContextWithOwner(ctx, lock.NewOwner(e.Owner))
	w.nest(ctx, t, e, m, 1+t.rand.IntN(3))
}

func (w *worker) nest(ctx context.Context, t task, e history.Entry, m *lock.Mutex, depth int) {
	h, err := w.take(ctx, t, e, m)
	if err != nil {
		return
	}
	count := func() { w.recorder.Count(e, func() int { return m.Held(ctx) }) }
	count()
	if w.hold(h, t) && depth > 1 {
		w.nest(ctx, t, e, m, depth-1)
	}
	release(h)
	count()
}

// paired is one of two goroutines that are one owner.
func (w *worker) paired(ctx context.Context, t task, owner lock.Owner) {
	path := w.path("reentrant")
	m := sound(lock.NewMutex(w.client, path))
	e := w.entry(history.Reentrant(), path, t)
	if h, err := w.take(lock.ContextWithOwner(ctx, owner), t, e, m); err == nil {
		w.hold(h, t)
		release(h)
	}
}

func (w *worker) reader(ctx context.Context, t task) {
	path := w.path("readwrite")
	rw := sound(lock.NewRWMutex(w.client, path))
	e := w.entry(history.ReadWrite(), path, t)
	e.Shared = true
	w.once(ctx, t, e, rw.Read())
}

// writer takes the write side, and sometimes goes on as a reader.
func (w *worker) writer(ctx context.Context, t task) {
	path := w.path("readwrite")
	rw := sound(lock.NewRWMutex(w.client, path))
	e := w.entry(history.ReadWrite(), path, t)
	ctx = lock.ContextWithOwner(ctx, lock.NewOwner(e.Owner))
	write, err := w.take(ctx, t, e, rw.Write())
	if err != nil {
		return
	}
	if !w.hold(write, t) || t.rand.IntN(3) > 0 {
		release(write)
		return
	}
	e.Shared = true
	read, err := w.take(ctx, t, e, rw.Read())
	release(write)
	if err == nil {
		w.hold(read, t)
		release(read)
	}
}

// refusedMixed counts attempts that were refused because the path has another kind of lock.
const refusedMixed = "was refused a lock of another kind"

// mixed takes a lock of one of several kinds on one path: at most one owner may ever hold it, whatever
// its kind.
func (w *worker) mixed(ctx context.Context, t task) {
	path := w.path("mixed")
	e := w.entry(history.Mutex(), path, t)
	var l lock.Locker
	switch t.rand.IntN(6) {
	case 0:
		l = sound(lock.NewRWMutex(w.client, path)).Write()
	case 1:
		l = sound(lock.NewSemaphoreMutex(w.client, path))
	case 2:
		l = sound(lock.NewUnfairMutex(w.client, path))
	default:
		l = sound(lock.NewMutex(w.client, path))
	}
	h, err := w.take(lock.ContextWithOwner(ctx, lock.NewOwner(e.Owner)), t, e, l)
	switch {
	case err == nil:
		w.hold(h, t)
		release(h)
	case errors.Is(err, lock.ErrMixed):
		w.did(refusedMixed)
	}
}

// multi takes two of three locks, or one of them alone.
func (w *worker) multi(ctx context.Context, t task) {
	path := w.path("multi")
	var members []lock.Locker
	for _, name := range []string{"/a", "/b", "/c"} {
		members = append(members, sound(lock.NewMutex(w.client, path+name)))
	}
	t.rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	e := w.entry(history.Multi(), path, t)
	if t.rand.IntN(3) == 0 {
		w.once(ctx, t, e, members[0])
		return
	}
	w.once(ctx, t, e, sound(lock.NewMulti(members[:2]...)))
}
