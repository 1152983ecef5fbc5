/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bystanders of a mass kill: those who have to do with the killed, or are
 * killed beside them, and must get on meanwhile. Each function does one such
 * kill, and returns NULL, or what went wrong: then some may be left, for
 * kill_and_reap_all().
 */
#ifndef KTEARDOWN_SIDE_EFFECTS_H
#define KTEARDOWN_SIDE_EFFECTS_H

/*
 * An event that wakes one of many comes when those who waited last are dead but
 * for their exit: does somebody get it who is alive?
 */
const char *event_reaches_running_task(void);

/*
 * Some are killed each by itself, and for each that goes another one: does a
 * group that is killed meanwhile go before they are all gone?
 */
const char *group_exits_beside_others(void);

#endif
