package discovery

// DescribedBy reports whether a znode with the data of the instance would be adopted.
func DescribedBy[T any](reg *Registration[T], in Instance[T]) bool {
	data, err := encode(&in, reg.cfg)
	return err == nil && reg.describedBy(data)
}
