package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/knadh/koanf/maps"

	"github.com/docent-go/docent/recipes/cache"
)

// A Provider is a koanf.Provider of the znodes that a cache has: of a cache of /config, the data of
// /config/database/pool is the value of database.pool. Znodes without data are directories.
type Provider struct {
	ctx   context.Context // ends Watch
	cache *cache.Cache
	wait  time.Duration // how long a Read waits for the cache to be filled
	file  string        // has the last good values, for a start without ZooKeeper

	latest map[string]any // of the last Read from ZooKeeper, else nil
}

// Read returns the values in ZooKeeper or, if the cache isn't filled in time or has none, those of the file: a tree
// that was deleted, or a typing error in the chroot, is no configuration.
func (p *Provider) Read() (map[string]any, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.wait)
	defer cancel()
	if err := p.cache.Ready(ctx); err != nil {
		return p.lastGood(err)
	}
	snapshot, values := p.cache.Snapshot(), make(map[string]any)
	for path, err := range snapshot.Unread() {
		return p.lastGood(fmt.Errorf("%s: %w", path, err)) // half a configuration is none
	}
	for path, node := range snapshot.All() {
		key := strings.TrimPrefix(strings.TrimPrefix(path, p.cache.Path()), "/")
		if key != "" && len(node.Data) > 0 {
			values[strings.ReplaceAll(key, "/", ".")] = string(node.Data)
		}
	}
	if len(values) == 0 {
		return p.lastGood(fmt.Errorf("%s has no values", p.cache.Path()))
	}
	p.latest = values
	return maps.Unflatten(values, "."), nil
}

// Watch calls changed at each change, from a goroutine that ends with the context.
func (p *Provider) Watch(changed func(event any, err error)) error {
	go func() {
		for _, err := range p.cache.Snapshots(p.ctx) {
			changed(nil, err)
		}
	}()
	return nil
}

// ReadBytes is for providers whose data need a parser.
func (p *Provider) ReadBytes() ([]byte, error) { return nil, errors.ErrUnsupported }

// Keep writes the values of the last Read to the file, if they are ZooKeeper's. Call it when they have proved to be
// good. It replaces the file as a whole, so that the end of the process leaves the old one or the new one.
func (p *Provider) Keep() error {
	text, err := json.Marshal(p.latest)
	if err != nil || p.latest == nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(p.file), "."+filepath.Base(p.file))
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err // the old file is good, and this one may be half written
	}
	return os.Rename(temporary, p.file)
}

func (p *Provider) lastGood(cause error) (map[string]any, error) {
	p.latest = nil
	text, err := os.ReadFile(p.file)
	values := make(map[string]any)
	if err = errors.Join(err, json.Unmarshal(text, &values)); err != nil {
		return nil, errors.Join(cause, err)
	}
	return maps.Unflatten(values, "."), nil
}
