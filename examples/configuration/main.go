// Configuration has a service whose settings are znodes, read by koanf into a Go type. It follows each
// change, and goes on with the last good values if new ones can't be read or ZooKeeper is away, also at
// the start.
//
//	go run .                          on a server within the program
//	go run . -connect localhost:2181  on yours
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/knadh/koanf/v2"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/cache"
)

const root = "/examples/configuration"

// settings are the whole configuration. Each znode is one value, as text.
type settings struct {
	Database struct {
		Host string
		Pool int
	}
	Maintenance bool
}

// load reads all settings, so that a value that is none refuses them as a whole.
func load(p *Provider) (s settings, err error) {
	k := koanf.New(".")
	if err := k.Load(p, nil); err != nil {
		return s, err
	}
	if err := k.Unmarshal("", &s); err != nil {
		return s, err
	}
	if s.Database.Host == "" {
		return s, errors.New("database.host is missing")
	}
	return s, nil
}

// follow calls listen with the settings, and again at each change of them, until ctx ends. It returns an
// error if there are none to begin with.
func follow(ctx context.Context, p *Provider, out io.Writer, listen func(before, now settings)) error {
	changes := make(chan error, 1) // one that waits is enough: all settings are read
	if err := p.Watch(func(_ any, err error) {
		select {
		case changes <- err:
		default:
		}
	}); err != nil {
		return err
	}
	var current settings
	use := func(latest settings) {
		if err := p.Keep(); err != nil {
			fmt.Fprintf(out, "a start without ZooKeeper will not have these settings: %v\n", err)
		}
		listen(current, latest)
		current = latest
	}
	first, err := load(p)
	if err != nil {
		return err
	}
	use(first)
	for ctx.Err() == nil {
		select {
		case err = <-changes:
		case <-ctx.Done():
			return nil
		}
		latest := current
		if err == nil {
			latest, err = load(p)
		}
		switch {
		case err != nil:
			fmt.Fprintf(out, "the last good settings stay: %v\n", err)
		case latest != current:
			use(latest)
		}
	}
	return nil
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	set := func(key, value string) error { // what an operator does
		_, err := client.CreateOrSet(ctx, root+"/"+key, []byte(value), framework.WithParents())
		return err
	}
	for key, value := range map[string]string{"database/host": "db1", "database/pool": "10", "maintenance": "false"} {
		if err := set(key, value); err != nil {
			return err
		}
	}
	tree, err := cache.New(client, root)
	if err != nil {
		return err
	}
	defer func() { _ = tree.Close() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	file := filepath.Join(os.TempDir(), fmt.Sprintf("settings-%d.json", os.Getpid()))
	defer func() { _ = os.Remove(file) }()
	steps := []func() error{
		func() error { return set("maintenance", "true") },
		func() error { stop(); return nil },
	}
	return follow(ctx, &Provider{ctx: ctx, cache: tree, wait: 5 * time.Second, file: file}, out,
		func(before, now settings) {
			if now.Maintenance != before.Maintenance { // a flag with a listener
				fmt.Fprintln(out, "maintenance:", now.Maintenance)
			}
			fmt.Fprintf(out, "database %s, %d connections\n", now.Database.Host, now.Database.Pool)
			if err := steps[0](); err != nil {
				fmt.Fprintln(out, err)
			}
			steps = steps[1:]
		})
}

func main() { harness.Main(run) }
