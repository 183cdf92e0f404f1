// Package model is an exhaustive model of one session: lanes, claims, settling.
package model
