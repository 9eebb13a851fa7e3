package main

import (
	"io"
	"time"
)

// A usage is what a process has used since it began.
type usage struct {
	cpu     time.Duration // of all its threads
	in, out int64         // bytes read and written, those of its files too
}

func (u usage) minus(v usage) usage { return usage{u.cpu - v.cpu, u.in - v.in, u.out - v.out} }

// A counter counts what is read through it.
type counter struct {
	io.Reader

	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}
