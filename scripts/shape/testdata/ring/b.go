package ring

type second struct{ third *third }

func Undocumented() *third { return newThird() }
