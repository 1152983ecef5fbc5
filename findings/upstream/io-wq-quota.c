// SPDX-License-Identifier: GPL-2.0
/*
 * Who waits for the CPU quota of an io_uring worker?
 *
 *	gcc -O2 -static -o io-wq-quota io-wq-quota.c
 *	QUOTA=10 ./io-wq-quota
 *
 * Run it as root with two CPUs, or as the init of a guest (then QUOTA is a word of the kernel's
 * command line, and the guest is switched off at the end). A process is in a cgroup with QUOTA
 * percent of one CPU; with QUOTA=0 there is no quota. Its worker uses CPU time for many periods,
 * and is out of quota then. The process itself is a real-time task, which has no quota. Printed is
 * how long others wait:
 *
 * - write: another process, outside of the cgroup, that shares the ring writes one byte to the file
 *   to which the worker writes 128 times, up to 8 MB each.
 * - execve: the process calls execve() 5 ms after its worker has completed its only request, and a
 *   process outside of the cgroup attaches to it with ptrace() 1 ms later.
 * - request: instead, the process gives its worker one byte to read.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1U
#endif

#define ROOT "/sys/fs/cgroup"
#define LIMITED ROOT "/limited"
#define PERIOD_US 100000
#define BUSY_NS 250000000LL
#define PARTS 1024
#define MOST_BYTES (1 << 20)
#define WRITES 128
#define ENTRIES WRITES
#define LIMIT_NS 60000000000LL

enum { BUSY, SHORT };

/* How much a part has, so that to read PARTS of them takes BUSY_NS; at most MOST_BYTES. */
static size_t part_bytes;
static char buffer[MOST_BYTES];
static struct iovec parts[PARTS];
static struct io_uring_params ring_params;
static int ring = -1, zero = -1, file = -1;

static struct shared {
	volatile bool submitted, go;
	volatile int64_t start_ns, end_ns;
} * shared;

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_ms(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("two CPUs are needed");
}

/* -- the ring, which all processes share -- */

static void *map_ring(size_t bytes, uint64_t offset)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
			(off_t)offset);

	if (at == MAP_FAILED)
		die("mmap of the ring");
	return at;
}

static void make_ring(void)
{
	uint32_t workers[] = {1, 1};

	memset(&ring_params, 0, sizeof(ring_params));
	ring = syscall(SYS_io_uring_setup, ENTRIES, &ring_params);
	if (ring < 0 ||
	    syscall(SYS_io_uring_register, ring, IORING_REGISTER_IOWQ_MAX_WORKERS, workers, 2))
		die("io_uring");
}

/* One process at a time submits. A worker serves each request. */
static void submit(struct io_uring_sqe request, uint64_t id)
{
	struct io_uring_sqe *entries =
		map_ring(ring_params.sq_entries * sizeof(*entries), IORING_OFF_SQES);
	char *sq = map_ring(ring_params.sq_off.array + ring_params.sq_entries * sizeof(uint32_t),
			    IORING_OFF_SQ_RING);
	_Atomic uint32_t *tail = (_Atomic uint32_t *)(void *)(sq + ring_params.sq_off.tail);
	uint32_t at = *tail % ring_params.sq_entries;

	request.flags = IOSQE_ASYNC;
	request.user_data = id;
	entries[at] = request;
	((uint32_t *)(void *)(sq + ring_params.sq_off.array))[at] = at;
	atomic_store_explicit(tail, *tail + 1, memory_order_release);
	if (syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0L) != 1)
		die("io_uring_enter");
}

/* Nothing takes completions out of the ring. */
static bool completed(uint64_t id)
{
	static char *cq;
	struct io_uring_cqe *done;
	uint32_t tail;

	if (!cq)
		cq = map_ring(ring_params.cq_off.cqes + ring_params.cq_entries * sizeof(*done),
			      IORING_OFF_CQ_RING);
	done = (struct io_uring_cqe *)(void *)(cq + ring_params.cq_off.cqes);
	tail = atomic_load_explicit((_Atomic uint32_t *)(void *)(cq + ring_params.cq_off.tail),
				    memory_order_acquire);
	for (uint32_t i = 0; i < tail; i++) {
		if (done[i].res <= 0) {
			errno = -done[i].res;
			die("a request");
		}
		if (done[i].user_data == id)
			return true;
	}
	return false;
}

static void await(uint64_t id)
{
	int64_t end_ns = now_ns() + LIMIT_NS;

	while (!completed(id) && now_ns() < end_ns)
		sleep_ms(1);
}

static void submit_parts(int opcode, int fd, uint32_t count)
{
	submit(
		(struct io_uring_sqe){
			.opcode = opcode, .fd = fd, .addr = (uintptr_t)parts, .len = count},
		BUSY);
}

static void submit_byte(int opcode, int fd, uint64_t id)
{
	submit(
		(struct io_uring_sqe){
			.opcode = opcode, .fd = fd, .addr = (uintptr_t)buffer, .len = 1},
		id);
}

/* -- the processes -- */

/* In the cgroup, and a real-time task; its workers are not. */
static void enter(void)
{
	struct sched_param param = {.sched_priority = 1};

	put(LIMITED "/cgroup.procs", "0");
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		die("sched_setscheduler");
}

static pid_t start(void (*body)(void))
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	enter();
	body();
	for (;;)
		pause();
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void write_for_long(void)
{
	for (int i = 0; i < WRITES; i++)
		submit_parts(IORING_OP_WRITEV, file, PARTS / WRITES);
	shared->submitted = true;
}

/* The writer's own workers belong to it, not to the process in the cgroup. */
static void write_byte(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		shared->start_ns = now_ns();
		submit_byte(IORING_OP_WRITE, file, SHORT);
		await(SHORT);
		shared->end_ns = now_ns();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void other_write(void)
{
	pid_t pid = start(write_for_long);

	while (!shared->submitted)
		sleep_ms(1);
	sleep_ms(50);
	write_byte();
	printf("write:   %7.1f ms\n", (double)(shared->end_ns - shared->start_ns) / 1e6);
	stop(pid);
}

/* Its worker has used the quota of many periods in one request, and has nothing to do. */
static void become_idle(void)
{
	submit_parts(IORING_OP_READV, zero, PARTS);
	await(BUSY);
	sleep_ms(5);
}

static void read_byte(void)
{
	become_idle();
	run_on(1);
	shared->start_ns = now_ns();
	submit_byte(IORING_OP_READ, zero, SHORT);
	await(SHORT);
	shared->end_ns = now_ns();
	shared->go = true;
}

static void next_request(void)
{
	pid_t pid = start(read_byte);

	while (!shared->go)
		sleep_ms(1);
	printf("request: %7.1f ms\n", (double)(shared->end_ns - shared->start_ns) / 1e6);
	stop(pid);
}

static void exec_itself(void)
{
	char *const arguments[] = {"io-wq-quota", "exit", NULL};

	become_idle();
	run_on(1);
	shared->start_ns = now_ns();
	shared->go = true;
	execv("/proc/self/exe", arguments);
	die("execv");
}

static void execs(void)
{
	pid_t pid = start(exec_itself), tracer;
	int64_t end_ns;

	while (!shared->go)
		sleep_ms(1);
	tracer = fork();
	if (tracer < 0)
		die("fork");
	if (!tracer) {
		sleep_ms(1);
		/* It may be too late to attach: how long the call waited is what matters. */
		ptrace(PTRACE_SEIZE, pid, 0, 0);
		shared->end_ns = now_ns();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	end_ns = now_ns();
	waitpid(tracer, NULL, 0);
	printf("execve:  %7.1f ms\n", (double)(end_ns - shared->start_ns) / 1e6);
	printf("ptrace:  %7.1f ms\n", (double)(shared->end_ns - shared->start_ns) / 1e6);
}

static void calibrate(void)
{
	struct iovec part = {.iov_base = buffer, .iov_len = sizeof(buffer)};
	int64_t best_ns = INT64_MAX, ns;

	for (int i = 0; i < 5; i++) {
		ns = now_ns();
		if (readv(zero, &part, 1) != (ssize_t)part.iov_len)
			die("readv");
		ns = now_ns() - ns;
		best_ns = ns < best_ns ? ns : best_ns;
	}
	part_bytes = (size_t)((double)sizeof(buffer) * BUSY_NS / PARTS / (double)(best_ns + 1));
	if (part_bytes > sizeof(buffer))
		part_bytes = sizeof(buffer);
	for (int i = 0; i < PARTS; i++)
		parts[i] = (struct iovec){.iov_base = buffer, .iov_len = part_bytes};
}

/* Each case has a ring and a cgroup of its own: the debt of one is not that of the next. */
static void play(void (*body)(void), long quota)
{
	char text[64];

	if (mkdir(LIMITED, 0755))
		die(LIMITED);
	snprintf(text, sizeof(text), "%ld %d", quota * PERIOD_US / 100, PERIOD_US);
	if (quota)
		put(LIMITED "/cpu.max", text);
	make_ring();
	body();
	close(ring);
	put(LIMITED "/cpu.max", "max");
	while (rmdir(LIMITED))
		sleep_ms(10);
}

int main(int argc, char **argv)
{
	const char *wanted = getenv("QUOTA");
	long quota = wanted ? atol(wanted) : 10;
	void (*const cases[])(void) = {other_write, execs, next_request};

	if (argc > 1 && !strcmp(argv[1], "exit"))
		return 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getpid() == 1) {
		mkdir("/proc", 0755);
		mkdir("/sys", 0755);
		if (mount("proc", "/proc", "proc", 0, NULL) ||
		    mount("sysfs", "/sys", "sysfs", 0, NULL) ||
		    mount("cgroup2", ROOT, "cgroup2", 0, NULL))
			die("mount");
	}
	put(ROOT "/cgroup.subtree_control", "+cpu");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	file = syscall(SYS_memfd_create, "file", MFD_CLOEXEC);
	if (shared == MAP_FAILED || zero < 0 || file < 0)
		die("cannot prepare");
	calibrate();
	printf("quota %ld%%, a long request has %d parts of %zu bytes\n", quota, PARTS, part_bytes);
	/* A child for each case, since a process keeps its workers. */
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		play(cases[i], quota);
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	return 0;
}
