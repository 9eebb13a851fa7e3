// Sizing tells what a number of clients asks of an ensemble, and how many ensembles they
// need: a small model of docent's requests, with costs that were measured.
//
//	go run ./docs/sizing
//	go run ./docs/sizing -clients 40000 -rate 0.2 -hold 2s -ahead 5 -timeout 15s -servers 5
//	go run ./docs/sizing -measured docs/sizing/measured     predictions and measurements
//	go test -run='^$' -bench=Cost ./docs/sizing       the costs, measured on a ZooKeeper
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	given := workload{name: "yours"}
	on := reference
	flag.IntVar(&given.clients, "clients", 0, "how many processes there are; 0 for the table of docs/sizing.md")
	flag.Float64Var(&given.rate, "rate", 1, "how often each of them locks, per second")
	flag.DurationVar(&given.hold, "hold", 100*time.Millisecond, "for how long it holds the lock")
	flag.Float64Var(&given.ahead, "ahead", 0, "how many contenders it finds ahead, on average")
	flag.DurationVar(&on.timeout, "timeout", on.timeout, "session timeout")
	flag.IntVar(&on.servers, "servers", on.servers, "of one ensemble")
	flag.Float64Var(&on.writes, "writes", on.writes, "that the ensemble can do, per second")
	flag.Float64Var(&on.reads, "reads", on.reads, "that each server can do, per second")
	flag.IntVar(&on.sessions, "sessions", on.sessions, "that one server is to have at the most")
	dir := flag.String("measured", "", "directory of measured curves: print them with the model's predictions, and nothing else")
	page := flag.String("page", "", "with -measured: page to write them into")
	flag.Parse()
	if *dir != "" {
		if err := showMeasured(*dir, *page); err != nil {
			fmt.Fprintln(os.Stderr, "sizing:", err)
			os.Exit(1)
		}
		return
	}
	if err := given.validate(on); err != nil {
		fmt.Fprintln(os.Stderr, "sizing:", err)
		os.Exit(2)
	}
	if given.clients > 0 {
		table(os.Stdout, on, []workload{given})
		return
	}
	table(os.Stdout, on, examples())
	fmt.Println()
	heartbeats(os.Stdout, on)
}

// showMeasured writes the measurements into the page, or to standard output if there is none.
func showMeasured(dir, page string) error {
	if page != "" {
		return replaceMeasured(page, dir)
	}
	return printMeasured(os.Stdout, dir)
}

// examples are the workloads of docs/sizing.md, each for a growing number of clients.
func examples() []workload {
	var all []workload
	for _, each := range []workload{
		{name: "singletons: one lock each, for days", rate: 0, hold: 24 * time.Hour, idle: true},
		{name: "a job a minute, for a second", rate: 1.0 / 60, hold: time.Second},
		{name: "ten locks a second, for 20 ms", rate: 10, hold: 20 * time.Millisecond},
		{name: "one lock a second, behind 20 others", rate: 1, hold: 10 * time.Millisecond, ahead: 20},
	} {
		for _, clients := range []int{100, 1_000, 10_000, 100_000} {
			each.clients = clients
			all = append(all, each)
		}
	}
	return all
}

// table prints what the workloads ask, as Markdown.
func table(w io.Writer, on ensemble, loads []workload) {
	fmt.Fprintln(w, "| workload | clients | writes/s | heartbeats/s | reads/s | leader | each server | sessions per server | ensembles |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, load := range loads {
		d := load.demand(on)
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %.0f %% | %.0f %% | %s | %d |\n", load.name, grouped(float64(load.clients)),
			grouped(d.writes), grouped(d.beats), grouped(d.reads), 100*d.leader, 100*d.server, grouped(d.sessions), d.ensembles)
	}
}

// heartbeats prints what clients ask that hold leases and write nothing, as Markdown.
func heartbeats(w io.Writer, on ensemble) {
	fmt.Fprintln(w, "| clients with leases | T | transactions/s | log of each server, KB/s | reads/s |")
	fmt.Fprintln(w, "|--:|--:|--:|--:|--:|")
	for _, timeout := range []time.Duration{10 * time.Second, 30 * time.Second} {
		on.timeout = timeout
		for _, clients := range []int{1, 100, 10_000} {
			d := workload{clients: clients, idle: true}.demand(on)
			fmt.Fprintf(w, "| %s | %v | %.4g | %.3g | %.4g |\n", grouped(float64(clients)), timeout, d.beats, d.log/1000, d.beats)
		}
	}
}

// grouped returns a whole number with its thousands apart.
func grouped(f float64) string {
	digits := fmt.Sprintf("%.0f", f)
	var parts []string
	for len(digits) > 3 {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, parts...), ",")
}
