package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

// awaitChildren returns when path has n children.
func (st *site) awaitChildren(ctx context.Context, path string, n int) error {
	for {
		st.looks++
		children, _, err := st.eye.Children(path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if len(children) >= n {
			return nil
		}
		if err := wait(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d are in the queue: %w", len(children), n, err)
		}
	}
}

// treeDirectory is how many znodes a directory of a tree is, with those in it.
const treeDirectory = 100

// makeTree makes a tree with n znodes of 100 bytes below path.
func (st *site) makeTree(path string, n int) error {
	data := make([]byte, 100)
	create := func(path string) any {
		return &zk.CreateRequest{Path: path, Data: data, Acl: zk.WorldACL(zk.PermAll)}
	}
	for _, dir := range []string{"/bench", path} {
		st.looks++
		if _, err := st.eye.Multi(create(dir)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("create %s: %w", dir, err)
		}
	}
	for i := 0; i < n; i += treeDirectory {
		dir := fmt.Sprintf("%s/%d", path, i/treeDirectory)
		ops := []any{create(dir)}
		for j := range min(treeDirectory, n-i) - 1 {
			ops = append(ops, create(fmt.Sprintf("%s/%d", dir, j)))
		}
		st.looks++
		if _, err := st.eye.Multi(ops...); err != nil {
			return fmt.Errorf("create %s: %w", dir, err)
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
