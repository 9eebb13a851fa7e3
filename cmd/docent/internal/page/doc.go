// Package page serves one page that shows the locks of an ensemble: holders, waiters, the wait-for
// graph, and the holds of the last minutes.
//
// A [Source] gives views of the locks. The server makes a board of the latest one. Each tab of a
// browser reads a stream of its own. A message brings the tab to the latest board. A slow tab misses
// boards and delays nothing.
//
// # Security
//
// The frame of the page holds no secret. All else needs the token. Every request must name a known
// host, because a page of another site can make a browser connect to loopback under that site's name.
// The page writes nothing, unless [Config.Revoke] is set.
package page
