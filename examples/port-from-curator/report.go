// Package report is a port of ReportJob.java, from Curator to docent. Both may run at the same time,
// on different hosts: they contend for one lock.
package report

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// A Job writes a report on one host at a time.
type Job struct{ mutex *lock.Mutex }

// NewJob returns a job. It has the path that the Java class has.
func NewJob(client *framework.Client) (*Job, error) {
	mutex, err := lock.NewMutex(client, "/locks/report")
	return &Job{mutex}, err
}

// Run returns false if another host has been writing for 5 seconds. The context of write ends if the
// lock is lost, which Java's does not tell.
func (j *Job) Run(ctx context.Context, write func(context.Context) error) (bool, error) {
	acquired := false
	err := lock.Do(ctx, j.mutex, func(held context.Context, _ *lock.Lease) error {
		acquired = true
		return write(held)
	}, lock.WaitAtMost(5*time.Second))
	var busy *lock.WaitError
	if !acquired && errors.As(err, &busy) && ctx.Err() == nil && !errors.Is(err, framework.ErrNotConnected) {
		return false, nil
	}
	return acquired, err
}
