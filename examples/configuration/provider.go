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
	file  string        // has the last values that were read, for a start without ZooKeeper
}

// Read returns the values in ZooKeeper or, if the cache isn't filled in time, those of the file.
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
	return maps.Unflatten(values, "."), p.keep(values)
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

// keep replaces the file as a whole, so that a crash leaves the old one or the new one.
func (p *Provider) keep(values map[string]any) error {
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(p.file), "."+filepath.Base(p.file))
	return errors.Join(os.WriteFile(temporary, text, 0o600), os.Rename(temporary, p.file))
}

func (p *Provider) lastGood(cause error) (map[string]any, error) {
	text, err := os.ReadFile(p.file)
	values := make(map[string]any)
	if err = errors.Join(err, json.Unmarshal(text, &values)); err != nil {
		return nil, errors.Join(cause, err)
	}
	return maps.Unflatten(values, "."), nil
}
