package fragments_test

import (
	"context"
	"net"
)

// Package net makes its resolver at the first look-up. One that is made in a bubble ends the process
// when it is used outside.
var _, _ = net.DefaultResolver.LookupHost(context.Background(), "localhost")
