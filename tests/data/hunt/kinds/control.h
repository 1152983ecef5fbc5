/* SPDX-License-Identifier: GPL-2.0 */
/* Descriptors of the test device /dev/hunt_control, whose release costs what its law says. */
#include "hunt/kind.h"

#include <sys/ioctl.h>

enum law {
	LINEAR,
	NLOGN,
	SESQUI,
	SQUARE,
	THRESHOLD,
	DEFERRED,
	TABLE,
	MAKING,
	WALK,
	BESIDE,
	SLEEP,
	SLEEP_ONCE,
	CALL,
	CALL_ONCE,
	RESIDENT,
};

static inline int open_control(enum law law)
{
	int fd = MUST(open("/dev/hunt_control", O_RDWR));

	MUST(ioctl(fd, _IO('h', law)));
	return fd;
}

/* For stay(). */
static inline void __attribute__((unused)) stay_open(int64_t i)
{
	(void)i;
	open_control(RESIDENT);
}
