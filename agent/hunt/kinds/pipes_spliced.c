// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/uio.h>

static char page[4096] __attribute__((aligned(4096)));

/* Each pipe has as many references to the page as it has places. */
static int open_one(int64_t i)
{
	struct iovec part = {page, 16};
	int ends[2], k;

	(void)i;
	MUST(pipe2(ends, O_NONBLOCK));
	for (k = 0; k < 16 && vmsplice(ends[1], &part, 1, 0) > 0; k++)
		;
	close(ends[1]);
	return ends[0];
}

KIND(pipes_spliced, "files", "pipe with 16 references to one page of memory", .shape = ON_ONE,
     .limit = "nofile", .open = open_one);
