#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The method of 20250716062639.1528066-1-zhangzihuan@kylinos.cn (../freezer.toml), in our own
# words: in each round one process holds more zombies than in the round before, and the machine
# suspends. The figures are in the log of the kernel: "Freezing user space processes completed
# (elapsed ... seconds)", and the same for the remaining freezable tasks.
#
# "none" in pm_test means a real suspend: the lab wakes the machine. Five seconds in
# pm_test_delay count only where a suspend is a test.
set -e
ROUNDS=${ROUNDS:-10} # how many suspends
STEP=${STEP:-3000}   # zombies that each round has more than the one before
WAIT=${WAIT:-5}      # seconds before and after each suspend

echo none >/sys/power/pm_test
echo 5 >/sys/module/suspend/parameters/pm_test_delay

round=1
while [ "$round" -le "$ROUNDS" ]; do
	./create_zombie $((STEP * round)) &
	sleep "$WAIT"
	echo mem >/sys/power/state
	# It fails, and ends the script, if there were no zombies in this round.
	pkill create_zombie
	sleep "$WAIT"
	round=$((round + 1))
done
