// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ring.h"

#include <sched.h>

/*
 * A child has a worker thread of io_uring for each object, which waits in the open() of a FIFO.
 * Then it is stopped: a message that gives one of its rings a descriptor stays in the list of its
 * task works until it runs. When the child is killed, each worker searches this list first, since
 * the child itself is in the class SCHED_IDLE.
 */
static pid_t pid;
static int target, *shared;

static void open_fifos(void)
{
	unsigned int most[2] = {nr_objects + 1, nr_objects + 1};
	struct io_uring_sqe request = {.opcode = IORING_OP_OPENAT,
				       .flags = IOSQE_ASYNC,
				       .fd = AT_FDCWD,
				       .addr = (uintptr_t) "fifo",
				       .open_flags = O_RDONLY};
	struct stat tasks;
	int64_t i;

	ring_make(1);
	ring_register(IORING_REGISTER_IOWQ_MAX_WORKERS, most, 2);
	for (i = 0; i < nr_objects; i++)
		ring_submit(&request);
	/* A link for each thread, and two more. */
	while (!stat("/proc/self/task", &tasks) && (int64_t)tasks.st_nlink < nr_objects + 3)
		usleep(1000);
	/* They have begun; now they block. */
	usleep(20000);
}

/* Its descriptors are those of the owner, too. */
static void be_stopped(void)
{
	struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER |
					     IORING_SETUP_DEFER_TASKRUN};
	struct sched_param param = {0};

	*shared = MUST(syscall(SYS_io_uring_setup, 1, &p));
	open_fifos();
	MUST(sched_setscheduler(0, SCHED_IDLE, &param));
	MUST(raise(SIGSTOP));
	wait_to_be_killed();
}

static void prepare(void)
{
	int file;

	MUST(mkfifo("fifo", 0600));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	MUST((long)shared);
	pid = child(CLONE_FILES, true);
	if (!pid)
		be_stopped();
	MUST(waitpid(pid, NULL, WUNTRACED));
	target = *shared;
	ring_make(1);
	file = MUST(open("/dev/null", O_RDONLY | O_CLOEXEC));
	ring_register(IORING_REGISTER_FILES, &file, 1);
}

static void stay(int64_t i)
{
	struct io_uring_sqe message = {.opcode = IORING_OP_MSG_RING,
				       .fd = target,
				       .addr = IORING_MSG_SEND_FD,
				       .file_index = IORING_FILE_INDEX_ALLOC,
				       .user_data = i};

	ring_submit(&message);
}

/* The workers exist since prepare(), while the child could run. */
static void make(void)
{
}

static void release(void)
{
	MUST(kill(pid, SIGKILL));
	MUST(waitpid(pid, NULL, 0));
}

KIND(io_uring_workers, "io_uring", "worker thread of a process that is killed", .shape = OF_ONE,
     .limit = "nproc", .needs = "CONFIG_IO_URING", .call = "kill() and waitpid()",
     .prepare = prepare, .make = make, .release = release,
     .resident = "task work of this process, a message to its ring", .residents_limit = "memory",
     .stay = stay);
