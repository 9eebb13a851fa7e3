package fragments_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/recipes/schedule"
	"github.com/docent-go/docent/recipes/semaphore"
)

func TestBarrierPage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		done := make(chan error)
		for range 5 {
			client := connect(t, s.server)
			go func() { done <- meet(t.Context(), client) }()
		}
		for range 5 {
			must.OK(t, <-done)
		}
	})
}

func meet(ctx context.Context, client *framework.Client) error {
	step, err := barrier.NewDouble(client, "/barriers/step", 5)
	if err != nil {
		return err
	}
	place, err := step.Enter(ctx) // all five are in
	if err != nil {
		return err
	}
	err = step.Leave(ctx, place) // all five are out
	return err
}

func TestCachePage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		must.Get(s.client.Create(t.Context(), "/config/routes/web", []byte("eu"), framework.WithParents()))(t)
		must.OK(t, follow(t.Context(), s.client))
	})
}

func follow(ctx context.Context, client *framework.Client) error {
	routes, err := cache.New(client, "/config/routes")
	if err != nil {
		return err
	}
	defer routes.Close()
	if err := routes.Ready(ctx); err != nil {
		return err
	}
	route, err := routes.Get("/config/routes/web")
	if err == nil && string(route.Data) != "eu" {
		return fmt.Errorf("the route is %v", route)
	}
	return err
}

func TestCounterPage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		for i := range int64(2) {
			id, first, err := number(t.Context(), s.client)
			if want := 1001*i + 1; err != nil || id != want || first != want+1 {
				t.Errorf("numbers %d and %d, %v; want %d and %d", id, first, err, want, want+1)
			}
			must.OK(t, limit(t.Context(), s.client))
		}
	})
}

func number(ctx context.Context, client *framework.Client) (int64, int64, error) {
	var numbers [2]int64
	err := func() error {
		orders, err := counter.New(client, "/sequences/orders")
		if err != nil {
			return err
		}
		id, err := orders.Add(ctx, 1) // the number after the addition
		if err != nil {
			return err
		}
		first, err := orders.Take(ctx, 1000) // first … first+999 are this process's
		numbers = [2]int64{id, first}
		return err
	}()
	return numbers[0], numbers[1], err
}

func limit(ctx context.Context, client *framework.Client) error {
	limits, err := counter.NewValue(client, "/settings/limits", model.JSON[map[string]int]())
	if err != nil {
		return err
	}
	_, err = limits.Update(ctx, func(old map[string]int, exists bool) (map[string]int, error) {
		if !exists {
			old = map[string]int{}
		}
		old["exports"]++
		return old, nil
	})
	return err
}

// A Place is what the instances of the page say of themselves.
type Place struct{ Zone string }

func register(ctx context.Context, client *framework.Client) error {
	services, err := discovery.New[Place](client, "/services", discovery.WithClass("com.example.Place"))
	if err != nil {
		return err
	}
	defer services.Close(ctx) // takes back what was registered
	registration, err := services.Register(discovery.Instance[Place]{
		Name: "web", Address: "10.0.0.7", Port: 8080, Payload: Place{Zone: "eu"},
	})
	if err != nil {
		return err
	}
	if err := registration.Await(ctx); err != nil {
		return err // node.ErrTaken: another session has this ID
	}
	web, err := services.Watch("web")
	if err != nil {
		return err
	}
	for instances, err := range web.Changes(ctx) {
		fmt.Println(len(instances), "instances", err) // err: the client may not read them now
	}
	return nil
}

func join(ctx context.Context, client *framework.Client) error {
	g, err := group.New(client, "/workers", recipes.WithSettle(2*time.Second))
	if err != nil {
		return err
	}
	defer g.Close(ctx) // leaves the group, too
	n, err := g.Join("worker-7", []byte("10.0.0.7:9000"))
	if err != nil {
		return err
	}
	if err := n.Await(ctx); err != nil {
		return err // node.ErrTaken: another process has this id, or the crashed one's session
	}
	for members, err := range g.Changes(ctx) {
		fmt.Println(len(members), "members", err) // err: the client may not read them now
	}
	return nil
}

func elect(ctx context.Context, client *framework.Client, lead function) error {
	election, err := leader.New(client, "/elections/report", leader.WithID("10.0.0.1:8080"))
	if err != nil {
		return err
	}
	err = election.Run(ctx, lead)
	return err
}

func TestLeaderPage_observer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		election := must.Get(leader.New(s.client, "/elections/report"))(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- observe(ctx, election) }()
		for _, opts := range [][]leader.Option{{leader.WithID("a")}, {leader.WithID("b"), leader.WithMetadata()}} {
			candidate := must.Get(leader.New(connect(t, s.server), "/elections/report", opts...))(t)
			term := must.Get(candidate.Campaign(t.Context()))(t)
			<-time.After(time.Second)
			must.OK(t, term.Release(t.Context()))
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the observer ended with %v", err)
		}
	})
}

func observe(ctx context.Context, election *leader.Election) error {
	for p, known := range election.Observe(ctx) {
		switch {
		case !known:
			fmt.Println("nobody leads, or the client can't know")
		case p.Metadata != nil:
			fmt.Printf("%s leads, on %s\n", p.Data, p.Metadata.Host)
		default: // a candidate WithID alone, or of Java
			fmt.Printf("%s leads\n", p.Data)
		}
	}
	return ctx.Err()
}

// Close ends a term as a loss, unless Run has returned.
func TestProductionPage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		election := must.Get(leader.New(s.client, "/elections/report"))(t)
		ctx, stop := context.WithCancel(t.Context())
		terms, runReturned := make(chan *lease.Lease, 1), make(chan struct{})
		go func() {
			defer close(runReturned)
			_ = election.Run(ctx, func(ctx context.Context, term *lease.Lease) error {
				terms <- term
				<-ctx.Done()
				return nil
			})
		}()
		term := <-terms
		must.OK(t, shutDown(stop, runReturned, s.client))
		if err := term.Err(); !errors.Is(err, lease.ErrReleased) {
			t.Errorf("the term ended with %v, want it released", err)
		}
	})
}

func shutDown(stop func(), runReturned <-chan struct{}, client *framework.Client) error {
	stop()        // ends the context of election.Run
	<-runReturned // closed when Run has returned
	return client.Close()
}

func keep(ctx context.Context, client *framework.Client) error {
	n, err := node.New(client, "/services/web/10.0.0.1:8080", []byte(`{"zone":"eu"}`))
	if err != nil {
		return err
	}
	defer n.Close(ctx)
	if err := n.Await(ctx); err != nil {
		return err // node.ErrTaken: another process has registered this address
	}
	err = n.Set(ctx, []byte(`{"zone":"us"}`)) // now, and whenever the znode is created again
	return err
}

func TestPartitionPage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		served := make(chan struct{}, 3)
		must.OK(t, forAWhile(t.Context(), s.client, func(ctx context.Context, client *framework.Client) error {
			return divide(ctx, client, func(ctx context.Context) error {
				served <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			})
		}))
		if len(served) != 3 {
			t.Errorf("%d keys are served, want 3", len(served))
		}
	})
}

func divide(ctx context.Context, client *framework.Client, work func(context.Context) error) error {
	shards, err := partition.New(client, "/shards", []string{"s1", "s2", "s3"})
	if err != nil {
		return err
	}
	serve := func(ctx context.Context, key string, l *lock.Lease) error {
		return work(ctx) // until ctx ends
	}
	err = shards.Run(ctx, serve)
	return err
}

// Two hosts come at 03:00, another day, and late.
func TestSchedulePage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		var j job
		day := time.Date(2026, time.March, 1, 3, 0, 0, 0, time.UTC)
		for _, call := range []struct {
			client *framework.Client
			slot   time.Time
			want   int
		}{
			{s.client, day, 1},
			{connect(t, s.server), day, 1},
			{connect(t, s.server), day.AddDate(0, 0, 1), 2},
			{s.client, day.AddDate(0, 0, 1), 2},
		} {
			must.OK(t, atThree(t.Context(), call.client, call.slot, j.work))
			j.want(t, call.want)
		}
		must.OK(t, remember(t.Context(), s.client))
	})
}

func atThree(ctx context.Context, client *framework.Client, threeOClock time.Time, report func(context.Context) error) error {
	nightly, err := schedule.New(client, "/jobs/nightly", schedule.WithWait(time.Hour))
	if err != nil {
		return err
	}
	result, err := nightly.Run(ctx, threeOClock, func(ctx context.Context, l *lock.Lease) error {
		return report(ctx) // stops when ctx ends
	})
	if err != nil {
		return err // it failed here, was lost or missed
	}
	fmt.Println(result.Outcome, result.Run.Host) // Ran, DoneElsewhere or RunningElsewhere
	return nil
}

func remember(ctx context.Context, client *framework.Client) error {
	nightly, err := schedule.New(client, "/jobs/nightly")
	if err != nil {
		return err
	}
	runs, err := nightly.History(ctx)
	if err != nil {
		return err
	}
	for _, run := range runs {
		fmt.Println(run.Slot, run.State, run.Host, run.To.Sub(run.From))
	}
	return nil
}

func acquire(ctx context.Context, client *framework.Client) error {
	downloads, err := semaphore.New(client, "/limits/downloads", 3)
	if err != nil {
		return err
	}
	l, err := downloads.Acquire(ctx, 2) // both together, or none
	if err != nil {
		return err
	}
	err = l.Release(ctx) // by any goroutine that has the lease
	return err
}
