package main

import _ "golang.org/x/sys/unix" // goes with the first package that imports it
