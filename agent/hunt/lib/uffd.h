/* SPDX-License-Identifier: GPL-2.0 */
/* userfaultfd, for faults of user mode only: an ordinary user may do that. */
#ifndef KTEARDOWN_HUNT_UFFD_H
#define KTEARDOWN_HUNT_UFFD_H

#include "hunt/kind.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

static inline int uffd_make(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = MUST(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));

	MUST(ioctl(fd, UFFDIO_API, &api));
	return fd;
}

static inline void uffd_register(int fd, void *at, size_t size)
{
	struct uffdio_register what = {.range = {(uintptr_t)at, size},
				       .mode = UFFDIO_REGISTER_MODE_MISSING};

	MUST(ioctl(fd, UFFDIO_REGISTER, &what));
}

#endif
