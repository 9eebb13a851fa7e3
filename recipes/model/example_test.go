package model_test

import (
	"errors"
	"fmt"

	"github.com/docent-go/docent/recipes/model"
)

// A process that knows version 1 meets data of version 2, and can't overwrite them by mistake.
func ExampleVersioned() {
	type limits struct {
		Rate int `json:"rate"`
	}
	codec := model.Versioned[limits](1, nil)
	data, err := codec.Encode(limits{Rate: 7})
	fmt.Println(string(data), err)
	_, err = codec.Decode([]byte(`{"schema":2,"rates":{"web":7}}`))
	fmt.Println(errors.Is(err, model.ErrSchema), err)
	// Output:
	// {"schema":1,"rate":7} <nil>
	// true model: unknown version of the schema: 2, this program writes 1 and also reads []
}

func ExamplePattern() {
	const route model.Pattern = "/routes/{service}/{instance}"
	path, err := route.Path("web", "web-1")
	fmt.Println(path, err)
	values, ok := route.Match("/routes/mail/mail-7")
	fmt.Println(values, ok)
	// Output:
	// /routes/web/web-1 <nil>
	// [mail mail-7] true
}
