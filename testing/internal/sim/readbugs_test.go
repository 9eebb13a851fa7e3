package sim_test

import (
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// The bugs of this file are of read/write locks.

// readersElsewhere has readers lock a path of their own.
func readersElsewhere(k *worker, f *framework.Client, h *handle) lock.Locker {
	if h.kind() != "read" {
		return h.locker
	}
	return elsewhereToRead(k, f, h)
}

func elsewhereToRead(_ *worker, f *framework.Client, h *handle) lock.Locker {
	other, err := lock.NewRWMutex(f, h.target.path+"-other")
	if err != nil {
		panic(err)
	}
	return other.Read()
}

// lonely has readers wait until each other reader is gone.
func lonely(_ *worker, f *framework.Client, h *handle) lock.Locker {
	if h.kind() != "read" {
		return h.locker
	}
	other, err := lock.NewRWMutex(f, h.target.path)
	if err != nil {
		panic(err)
	}
	return other.Write()
}
