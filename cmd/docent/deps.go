package main

// The commands need these modules; each line goes when the first package imports its module.
import _ "charm.land/bubbletea/v2"
