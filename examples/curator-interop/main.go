// Curator-interop has a Go process and a Java process with Apache Curator take turns on
// one lock: docent's Mutex and Curator's InterProcessMutex, with the same path and
// nothing else to agree about. Both count in one znode, by a read and a write that only the
// lock keeps together: if both were in at once, the count would fall short.
//
//	go run ./examples/curator-interop                          on a server within the program
//	go run ./examples/curator-interop -connect localhost:2181  on yours
//
// It needs a JDK 11 or newer, in PATH or at JAVA_HOME, and Debian's package libcurator-recipes-java or a directory of
// jars at CURATOR_HOME. Without, the Go side goes alone, and says so.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

const (
	lockPath = "/examples/interop/lock"
	counter  = "/examples/interop/counter"
	rounds   = 10
)

// count counts as the Java side does: see Peer.java.
func count(ctx context.Context, client *framework.Client, out io.Writer) error {
	mutex, err := lock.NewMutex(client, lockPath)
	if err != nil {
		return err
	}
	for range rounds {
		err := lock.Do(ctx, mutex, func(ctx context.Context, _ *lock.Lease) error {
			old, err := counted(ctx, client)
			if err != nil {
				return err
			}
			<-time.After(10 * time.Millisecond) // time enough for another process to come in between
			if _, err := client.Set(ctx, counter, []byte(strconv.Itoa(old+1)), framework.AnyVersion); err != nil {
				return err
			}
			fmt.Fprintln(out, "docent counts", old+1)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func counted(ctx context.Context, client *framework.Client) (int, error) {
	data, _, err := client.Get(ctx, counter)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(data))
}

// awaitCurator waits until the Java side has counted once: from then on the two contend.
func awaitCurator(ctx context.Context, client *framework.Client, ended <-chan error) error {
	for {
		watch, err := client.Watch(ctx, counter, framework.WatchData)
		if err != nil {
			return err
		}
		defer watch.Close()
		if string(watch.Data()) != "0" {
			return nil
		}
		select {
		case <-watch.Fired():
		case err := <-ended:
			return errors.Join(errors.New("curator ended before it had counted"), err)
		}
	}
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) (err error) {
	if zk.Embedded != nil { // Java comes by TCP
		if zk.Connect, err = zk.Embedded.Listen("127.0.0.1:0"); err != nil {
			return err
		}
	}
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if _, err := client.CreateOrSet(ctx, counter, []byte("0"), framework.WithParents()); err != nil {
		return err
	}

	want, curator := rounds, make(chan error, 1) // what came of the Java side
	if _, missing := exec.LookPath(command("javac")); missing != nil || classpath() == "" {
		fmt.Fprintln(out, "*** NO JAVA OR NO CURATOR HERE: docent counts alone, which shows nothing about the two.")
		fmt.Fprintln(out, "*** Debian: apt-get install default-jdk-headless libcurator-recipes-java; elsewhere set CURATOR_HOME.")
		curator <- nil
	} else {
		want = 2 * rounds
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() { curator <- runCurator(ctx, zk.Connect, out) }() // cancel ends it where the end is not waited for
		if err := awaitCurator(ctx, client, curator); err != nil {
			return err
		}
	}
	if err := count(ctx, client, out); err != nil {
		return err
	}
	if err := <-curator; err != nil {
		return err
	}
	got, err := counted(ctx, client)
	if err != nil || got != want {
		return errors.Join(err, fmt.Errorf("counted %d, want %d", got, want))
	}
	fmt.Fprintf(out, "counted %d, none lost\n", got)
	return nil
}

func main() { harness.Main(run) }
