/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Side effects of a mass kill on processes that wait together with killed ones, or are
 * killed beside them. Each function does one such kill, and returns NULL, or what went
 * wrong; then processes may be left, for kill_and_reap_all().
 */
#ifndef KTEARDOWN_SIDE_EFFECTS_H
#define KTEARDOWN_SIDE_EFFECTS_H

/*
 * An event that wakes one of many tasks comes when those that began to wait last are
 * killed and have not exited yet. Does a running task get it?
 */
const char *event_reaches_running_task(void);

/*
 * Some processes are killed one by one, the next one whenever one has exited. Does a group
 * that is killed meanwhile exit before all of them have?
 */
const char *group_exits_beside_others(void);

#endif
