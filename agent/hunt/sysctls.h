/* SPDX-License-Identifier: GPL-2.0 */
/* The limits of the whole guest; a program of one kind alone leaves those of its machine as they
 * are. */
#ifndef KTEARDOWN_HUNT_SYSCTLS_H
#define KTEARDOWN_HUNT_SYSCTLS_H

/* Raises every sysctl that keeps root from having hundreds of thousands of objects. */
void raise_sysctls(void);

#endif
