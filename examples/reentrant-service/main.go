// Reentrant-service is an HTTP service of which several instances run. It changes its stock under
// one lock, which all layers take: the handler, the service and the repository. Each is right when
// it is called alone, and none has to know whether its caller holds the lock. Only the outermost
// waits, because the lock is reentrant.
//
//	go run ./examples/reentrant-service                          two instances, under load, on a server within the program
//	go run ./examples/reentrant-service -connect localhost:2181  the same on yours
//	go run ./examples/reentrant-service -listen localhost:8080   one instance, until Ctrl-C; curl -X POST localhost:8080/orders
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
)

// An instance is one process of the service.
type instance struct {
	client *framework.Client
	server *http.Server
	url    string
}

func start(ctx context.Context, zk harness.ZooKeeper, addr string) (*instance, error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return nil, err
	}
	handler, err := newHandler(client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	i := &instance{client, &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}, "http://" + listener.Addr().String()}
	go func() { _ = i.server.Serve(listener) }() // ends with stop
	return i, nil
}

// stop lets the requests end that run, and then the client, which their locks need.
func (i *instance) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return errors.Join(i.server.Shutdown(ctx), i.client.Close())
}

// load has orders placed, eight at a time, and returns how many had which answer.
func load(ctx context.Context, orders int, urls ...string) (map[int]int, error) {
	var (
		mu      sync.Mutex // guards following
		answers = make(map[int]int)
		faults  []error
		buyers  sync.WaitGroup
		todo    = make(chan string)
		browser = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	)
	defer browser.CloseIdleConnections() // the servers' Shutdown waits for those that were never used
	for range 8 {
		buyers.Go(func() {
			for url := range todo {
				status, err := order(ctx, browser, url)
				mu.Lock()
				answers[status]++
				faults = append(faults, err)
				mu.Unlock()
			}
		})
	}
	for n := range orders {
		todo <- urls[n%len(urls)]
	}
	close(todo)
	buyers.Wait()
	return answers, errors.Join(faults...)
}

func order(ctx context.Context, browser *http.Client, url string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/orders", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := browser.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// run fills the stock with 20 and has 30 orders come in at two instances; with listen
// it serves there instead, until ctx ends.
func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer, listen string) (err error) {
	addrs := []string{"127.0.0.1:0", "127.0.0.1:0"}
	if listen != "" {
		addrs = []string{listen}
	}
	var all []*instance
	for _, addr := range addrs {
		i, err := start(ctx, zk, addr)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, i.stop(ctx)) }()
		all = append(all, i)
	}
	if _, err := all[0].client.CreateOrSet(ctx, stockPath, []byte(strconv.Itoa(20)), framework.WithParents()); err != nil {
		return err
	}
	if listen != "" {
		fmt.Fprintln(out, "serving at", all[0].url)
		<-ctx.Done()
		return nil
	}
	answers, err := load(ctx, 30, all[0].url, all[1].url)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "30 orders for 20 pieces: %d sold, %d sold out\n", answers[http.StatusCreated], answers[http.StatusConflict])
	if answers[http.StatusCreated] != 20 || answers[http.StatusConflict] != 10 {
		return fmt.Errorf("answers %v, want 20 times 201 and 10 times 409", answers)
	}
	return nil
}

func main() {
	listen := flag.String("listen", "", "serve at this address, instead of a demonstration")
	harness.Main(func(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
		return run(ctx, zk, out, *listen)
	})
}
