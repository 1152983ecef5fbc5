#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The method of DragonFly BSD's commit 5eab490ea55e (../pipes.toml), in our own words: processes
# that are chained by pipes are killed with ^C on their terminal, all at once. The chain asks for
# the ^C with a line "kt-interrupt", and prints how long it took until all were gone.
#
# The ^C reaches this shell as well. Without the trap it would die of it.
N=${N:-1000} # processes, and pipes; posted: 900000
trap : INT

./pipes "$N"
