package fault_test

import (
	"fmt"

	"github.com/docent-go/docent/testing/fault"
)

// A test adds rules and reads their handles; a server or proxy matches frames and
// carries out what the rules say.
func Example() {
	var rules fault.Rules
	lost := rules.Add(fault.Rule{Op: fault.Create, Path: "/locks/*", Action: fault.DropReply})

	for _, path := range []string{"/other", "/locks/lock-", "/locks/lock-"} {
		injection := rules.Match(fault.Frame{Op: fault.Create, Path: path})
		if injection == nil {
			fmt.Println(path, "passes")
			continue
		}
		fmt.Println(path, "has the fault", injection.Action())
		injection.Commit()
	}
	<-lost.Hit()
	fmt.Println("hits:", lost.Hits())
	// Output:
	// /other passes
	// /locks/lock- has the fault DropReply
	// /locks/lock- passes
	// hits: 1
}
