package recipetest

import (
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// ExampleClient returns a client of a server within the process, which closeAll closes, too.
func ExampleClient(opts ...framework.Option) (client *framework.Client, closeAll func()) {
	server, err := zkserver.Start()
	if err != nil {
		panic(err)
	}
	client, err = framework.NewClient(server.Addr(), append(opts, framework.WithDialer(server.Dial))...)
	if err != nil {
		panic(err)
	}
	return client, func() {
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			panic(err)
		}
	}
}
