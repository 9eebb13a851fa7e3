// Config-rollout changes a configuration that consists of several znodes, while
// services use it. Requests are served under the read side of a lock.RWMutex: many
// at a time, each with settings that belong together. A rollout takes the write side,
// so it begins when the requests that run are done. Then it goes on as a reader, to
// check what it wrote: requests come in again, and no other rollout does.
//
//	go run ./examples/config-rollout                          on a server within the program
//	go run ./examples/config-rollout -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

const settings = "/examples/rollout/settings"

type service struct {
	client *framework.Client
	config *lock.RWMutex
}

func newService(zk harness.ZooKeeper) (*service, error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return nil, err
	}
	config, err := lock.NewRWMutex(client, "/examples/rollout/lock")
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &service{client, config}, nil
}

// serve handles a request, and returns the version of the settings that it was handled by.
func (s *service) serve(ctx context.Context) (version string, err error) {
	err = lock.Do(ctx, s.config.Read(), func(ctx context.Context, _ *lock.Lease) error {
		url, err := s.setting(ctx, "url")
		if err != nil {
			return err
		}
		<-time.After(10 * time.Millisecond) // the request takes its time
		key, err := s.setting(ctx, "key")
		if err != nil {
			return err
		}
		if url != key {
			return fmt.Errorf("url of %s with the key of %s", url, key)
		}
		version = url
		return nil
	})
	return version, err
}

func (s *service) setting(ctx context.Context, name string) (string, error) {
	data, _, err := s.client.Get(ctx, settings+"/"+name)
	return string(data), err
}

// rollout changes all settings to a version, and checks the result.
func (s *service) rollout(ctx context.Context, version string, out io.Writer) (err error) {
	write, err := s.config.Write().Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release(ctx, write)) }()
	writing, cancel := write.Context(ctx)
	defer cancel()
	fmt.Fprintf(out, "rollout of %s: no request runs\n", version)
	for _, name := range []string{"url", "key"} { // in a transaction each, for the sake of the example
		set := framework.OpSet(settings+"/"+name, []byte(version), framework.AnyVersion)
		if _, err := s.client.Txn(writing, write.Guard(), set); err != nil {
			return err
		}
	}

	read, err := s.config.Read().Lock(ctx) // at once, for who has the write side
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release(ctx, read)) }()
	if err := write.Release(ctx); err != nil {
		return err
	}
	got, err := s.serve(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "rollout of %s: checked %s while others read\n", version, got)
	return nil
}

// release releases a lease unless that was done before.
func release(ctx context.Context, l *lock.Lease) error {
	if err := l.Release(ctx); !errors.Is(err, lock.ErrReleased) {
		return err
	}
	return nil
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) (err error) {
	var all []*service
	for range 3 {
		s, err := newService(zk)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.client.Close()) }()
		all = append(all, s)
	}
	for _, name := range []string{"url", "key"} {
		if _, err := all[0].client.CreateOrSet(ctx, settings+"/"+name, []byte("v1"), framework.WithParents()); err != nil {
			return err
		}
	}

	var (
		running  sync.WaitGroup
		errs     = make([]error, len(all))
		versions = make([]map[string]int, len(all))
	)
	for i, s := range all {
		versions[i] = make(map[string]int)
		running.Go(func() {
			for versions[i]["v2"] < 5 && errs[i] == nil { // requests, until the new settings are in use
				var version string
				version, errs[i] = s.serve(ctx)
				versions[i][version]++
			}
		})
	}
	<-time.After(100 * time.Millisecond)
	rolledOut := all[0].rollout(ctx, "v2", out)
	running.Wait()
	for i := range all {
		fmt.Fprintf(out, "service %d: some requests by v1: %v, then %d by v2\n", i+1, versions[i]["v1"] > 0, versions[i]["v2"])
	}
	return errors.Join(append(errs, rolledOut)...)
}

func main() { harness.Main(run) }
