package ring

type third struct{ first *Node }

func newThird() *third { return &third{first: &Node{name: "x", other: nil}} }
