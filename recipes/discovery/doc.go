// Package discovery registers instances of services and finds them. Its znodes have the format of
// Curator's x-discovery, which Spring Cloud and Dubbo use: Java processes read the instances of Go
// processes, and the other way round.
//
// [New] returns a [Registry], which has the services below a base path. [Registry.Register] creates the znode of an
// instance and creates it again if it was lost. [Registry.Instances] reads the instances of a service
// once. [Registry.Watch] keeps them in memory and reports changes.
//
// Stability: stable.
//
// # Payloads
//
// The type parameter is the type of the payload, which encoding/json has to encode and decode. It
// should encode as a JSON object or string. Java's default reader needs the name of its own class
// in an object, as the member "@class": see [WithClass]. A payload type that is a map or
// [encoding/json.RawMessage] contains that member when it is read.
//
// # Outages
//
// A list of instances is behind the ensemble by a moment while the client is connected. During an
// outage a [Service] keeps its last list, and [Service.Stale] returns since when. A list can name an
// instance that has just ended, so callers have to expect connections that fail.
//
// Errors are [framework.ErrClosed], [node.ErrTaken] if another client registered the same
// instance, and those of the client's operations. Everything here may be used concurrently.
package discovery
