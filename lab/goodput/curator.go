package main

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/docent-go/docent/lab/peers"
)

//go:embed GoodputDriver.java
var driver []byte

// A curatorProcess is the contender in Java.
type curatorProcess struct{ command []string }

// compile compiles the driver into dir.
func compile(ctx context.Context, dir string) (c curatorProcess, err error) {
	c.command, err = peers.Compile(ctx, dir, "GoodputDriver", driver, "-Xmx2g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=OFF")
	return c, err
}

// run exchanges lines with the driver: it says "locked", and is told to go on; it says what came of the load, and
// is told to end.
func (c curatorProcess) run(ctx context.Context, addr string, l load, locked, done func() error) (r result, err error) {
	args := append(c.command[1:], addr, strconv.Itoa(l.reads), strconv.Itoa(l.perTick), strconv.FormatInt(l.lasts.Milliseconds(), 10))
	cmd := exec.CommandContext(ctx, c.command[0], args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return r, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	defer func() {
		_ = in.Close()
		if ended := cmd.Wait(); err == nil {
			err = ended
		}
	}()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "locked" {
		return r, fmt.Errorf("the driver said %q", lines.Text())
	}
	if err := locked(); err != nil {
		return r, err
	}
	fmt.Fprintln(in, "go")
	if !lines.Scan() {
		return r, fmt.Errorf("the driver ended: %w", lines.Err())
	}
	var took, after int64
	if _, err := fmt.Sscan(lines.Text(), &r.OK, &took, &after); err != nil {
		return r, fmt.Errorf("the driver said %q: %w", lines.Text(), err)
	}
	r.Took, r.After = time.Duration(took)*time.Millisecond, time.Duration(after)*time.Millisecond
	return r, done()
}
