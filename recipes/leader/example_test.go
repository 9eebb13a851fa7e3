package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// Run leads whenever it can, until the context ends or lead returns an error.
func ExampleElection_Run() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	election, err := leader.New(client, "/elections/report", leader.WithID("10.0.0.1:8080"))
	if err != nil {
		log.Fatal(err)
	}
	terms := 0
	err = election.Run(context.Background(), func(ctx context.Context, term *lease.Lease) error {
		if terms++; terms == 2 {
			return errors.New("enough") // ends Run
		}
		fmt.Println("leading, until ctx ends:", ctx.Err(), term.Err())
		return nil // resigns, and campaigns again
	})
	fmt.Println(terms, "terms:", err)
	// Output:
	// leading, until ctx ends: <nil> <nil>
	// 2 terms: enough
}

// Campaign returns the lease of a term, and every process can ask who leads.
func ExampleElection_Campaign() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	election, err := leader.New(client, "/elections/report", leader.WithID("10.0.0.1:8080"))
	if err != nil {
		log.Fatal(err)
	}
	term, err := election.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	present, ok, err := election.Leader(ctx)
	fmt.Println(string(present.Data), ok, err)
	fmt.Println(term.Release(ctx))
	_, ok, err = election.Leader(ctx)
	fmt.Println(ok, err)
	// Output:
	// 10.0.0.1:8080 true <nil>
	// <nil>
	// false <nil>
}

// The format Selector is that of Curator's LeaderSelector. It is also a mutex's: a holder of the lock keeps
// candidates waiting, and the leader keeps the lock.
func ExampleWithFormat() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	election, err := leader.New(client, "/elections/report", leader.WithFormat(leader.Selector))
	if err != nil {
		log.Fatal(err)
	}
	mutex, err := lock.NewMutex(client, "/elections/report")
	if err != nil {
		log.Fatal(err)
	}
	term, err := election.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = mutex.TryLock(ctx)
	fmt.Println("while it leads:", errors.Is(err, lock.ErrHeld))
	fmt.Println(term.Release(ctx))
	_, err = mutex.TryLock(ctx)
	fmt.Println("after that:", err)
	// Output:
	// while it leads: true
	// <nil>
	// after that: <nil>
}

// The candidate's znode also says which process it is, on which host.
func ExampleWithMetadata() {
	client, closeAll := recipetest.ExampleClient()
	defer closeAll()
	ctx := context.Background()
	election, err := leader.New(client, "/elections/report", leader.WithID("10.0.0.1:8080"), leader.WithMetadata())
	if err != nil {
		log.Fatal(err)
	}
	term, err := election.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer term.Release(ctx)
	present, _, err := election.Leader(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, and its process: %v\n", present.Data, present.Metadata.PID == os.Getpid())
	// Output: 10.0.0.1:8080, and its process: true
}
