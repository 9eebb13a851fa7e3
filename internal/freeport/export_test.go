package freeport

var Free = free
