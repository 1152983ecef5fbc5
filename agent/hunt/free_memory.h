/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KTEARDOWN_HUNT_FREE_MEMORY_H
#define KTEARDOWN_HUNT_FREE_MEMORY_H

#include <stdint.h>

/* Free memory, with the pages in the lists of each CPU, which the kernel does not count as free. */
int64_t free_memory_kb(void);

#endif
