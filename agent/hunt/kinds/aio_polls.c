// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <linux/aio_abi.h>
#include <poll.h>

static aio_context_t context;
static struct iocb *requests;
static int ends[2];

static void prepare(void)
{
	requests = array(sizeof(*requests));
	MUST(pipe(ends));
	MUST(syscall(SYS_io_setup, nr_objects, &context));
}

static void add(int64_t i)
{
	struct iocb *request = &requests[i];

	request->aio_lio_opcode = IOCB_CMD_POLL;
	request->aio_fildes = ends[0];
	request->aio_buf = POLLIN;
	MUST(syscall(SYS_io_submit, context, 1, &request));
}

static void remove_one(int64_t i)
{
	struct io_event event;

	/* It fails with EINPROGRESS, and the request is completed later. */
	syscall(SYS_io_cancel, context, &requests[i], &event);
}

static void release(void)
{
	MUST(syscall(SYS_io_destroy, context));
}

KIND(aio_polls, "aio", "poll request of one pipe in one context, in flight", .shape = ON_ONE,
     .limit = "aio_max_nr", .needs = "CONFIG_AIO", .exit = true, .call = "io_destroy()",
     .prepare = prepare, .add = add, .remove = remove_one, .release = release);
