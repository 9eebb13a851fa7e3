// Command victim is broken by the tests of mutation.
package main

func main() { println(sum(1, 2)) }
