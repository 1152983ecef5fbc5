// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "targets.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inflight_io.h"
#include "lib/cgroup.h"
#include "lib/fuse_server.h"

#define MB (1 << 20)
#define PAGE 4096

__attribute__((noreturn)) static void sleep_forever(void)
{
	for (;;)
		pause();
}

__attribute__((noreturn)) static void spin(void)
{
	for (;;)
		getppid();
}

static void ready(struct targets_shared *s)
{
	s->ready++;
}

/* If a step fails, this process does not become ready, and the round fails. */
static void need(bool ok)
{
	if (!ok)
		_exit(1);
}

static void touch(size_t bytes)
{
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED);
	for (size_t at = 0; at < bytes; at += PAGE)
		memory[at] = 1;
}

static void wait_for_go(const struct targets_shared *s)
{
	while (!s->go)
		sleep_ms(1);
}

/* -- the kinds -- */

static void sleeping(struct targets_shared *s)
{
	ready(s);
	sleep_forever();
}

static void reading(struct targets_shared *s)
{
	int fds[2];
	char byte;

	need(!pipe(fds));
	ready(s);
	need(read(fds[0], &byte, 1) == 1);
}

static void spinning(struct targets_shared *s)
{
	ready(s);
	spin();
}

static void stopped(struct targets_shared *s)
{
	ready(s);
	raise(SIGSTOP);
	spin();
}

static void in_cgroup(struct targets_shared *s, const char *procs)
{
	need(!write_file(procs, "0"));
	ready(s);
	spin();
}

static void frozen(struct targets_shared *s)
{
	in_cgroup(s, CG_FROZEN "/cgroup.procs");
}

static void throttled(struct targets_shared *s)
{
	in_cgroup(s, CG_THROTTLED "/cgroup.procs");
}

static void nice_19(struct targets_shared *s)
{
	need(!setpriority(PRIO_PROCESS, 0, 19));
	spinning(s);
}

static void real_time(struct targets_shared *s)
{
	struct sched_param param = {.sched_priority = 10};

	need(!sched_setscheduler(0, SCHED_FIFO, &param));
	ready(s);
	for (;;)
		sleep_ms(2);
}

static void *thread(void *spins)
{
	if (spins)
		spin();
	sleep_forever();
}

static void start_threads(void)
{
	pthread_t id;

	for (int i = 0; i < 3; i++)
		need(!pthread_create(&id, NULL, thread, i ? NULL : &thread));
}

static void threads(struct targets_shared *s)
{
	start_threads();
	ready(s);
	sleep_forever();
}

static void leader_dead(struct targets_shared *s)
{
	start_threads();
	ready(s);
	syscall(SYS_exit, 0);
}

static void in_vfork(struct targets_shared *s)
{
	ready(s);
	if (!vfork())
		sleep_forever();
	sleep_forever();
}

static void large(struct targets_shared *s)
{
	touch(4 * MB);
	ready(s);
	sleep_forever();
}

static void dumping(struct targets_shared *s)
{
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};

	need(!setrlimit(RLIMIT_CORE, &all));
	start_threads();
	touch(2 * MB);
	ready(s);
	wait_for_go(s);
	abort();
}

/* Exceeds the memory limit of its cgroup while the group is being killed. */
static void out_of_memory(struct targets_shared *s)
{
	need(!write_file(CG_SMALL "/cgroup.procs", "0"));
	ready(s);
	wait_for_go(s);
	touch(64 * MB);
}

static void in_fuse(struct targets_shared *s)
{
	need(open(FUSE_FILE, O_RDONLY) >= 0);
	ready(s);
	sleep_forever();
}

/*
 * Whatever the kill does, it wakes up by itself soon after, and sleeps again in its exit: a task
 * that has to wake others must not rely on it.
 */
static void waking(struct targets_shared *s)
{
	need(open(FUSE_FILE, O_RDONLY) >= 0);
	ready(s);
	for (;;)
		sleep_ms(1);
}

static void on_pty(struct targets_shared *s)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	char byte;

	need(master >= 0 && !unlockpt(master));
	need(open(ptsname(master), O_RDWR | O_NOCTTY) >= 0);
	ready(s);
	need(read(master, &byte, 1) == 1);
}

/* Stops its child, and is killed before it continues it. */
static void tracing(struct targets_shared *s)
{
	pid_t child = fork();

	if (!child) {
		need(!ptrace(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		spin();
	}
	need(waitpid(child, NULL, WUNTRACED) == child);
	ready(s);
	sleep_forever();
}

static void traced(struct targets_shared *s)
{
	s->traced = getpid();
	ready(s);
	sleep_forever();
}

static struct {
	struct robust_list_head head;
	struct robust_list entry;
} robust;

static void owning_futex(struct targets_shared *s)
{
	robust.head.list.next = &robust.entry;
	robust.entry.next = &robust.head.list;
	robust.head.futex_offset = (char *)&s->futex - (char *)&robust.entry;
	need(!syscall(SYS_set_robust_list, &robust.head, sizeof(robust.head)));
	s->futex = getpid() | FUTEX_WAITERS;
	ready(s);
	sleep_forever();
}

/* Requests in flight, through one of the interfaces. */
static void requesting(struct targets_shared *s, int (*submit)(int fd))
{
	int fds[2];

	need(!pipe(fds) && !submit(fds[0]));
	ready(s);
	sleep_forever();
}

static void in_aio(struct targets_shared *s)
{
	requesting(s, inflight_aio);
}

static void in_uring(struct targets_shared *s)
{
	requesting(s, inflight_uring);
}

/* In FUSE: more than a design lets exit at once, 4 for each of two CPUs. Else none is late. */
const struct target_kind target_kinds[] = {
	{"in_fuse", in_fuse, 16, 'S'},
	{"reading", reading, 6, 'S'},
	{"spinning", spinning, 4, 0},
	{"stopped", stopped, 4, 'T'},
	{"frozen", frozen, 4, 0},
	{"throttled", throttled, 4, 0},
	{"nice_19", nice_19, 2, 0},
	{"real_time", real_time, 2, 0},
	{"threads", threads, 4, 0},
	{"leader_dead", leader_dead, 4, 'Z'},
	{"in_vfork", in_vfork, 4, 'D'},
	{"large", large, 6, 'S'},
	{"dumping", dumping, 3, 0},
	{"out_of_memory", out_of_memory, 2, 0},
	{"on_pty", on_pty, 3, 'S'},
	{"tracing", tracing, 3, 'S'},
	{"traced", traced, 1, 0},
	{"owning_futex", owning_futex, 1, 'S'},
	{"in_aio", in_aio, 3, 'S'},
	{"in_uring", in_uring, 3, 'S'},
	{"waking", waking, 16, 0},
	{"sleeping", sleeping, 2, 'S'},
	{0},
};

/* -- setup and processes outside the group -- */

int targets_prepare(void)
{
	int error = write_file(CG "cgroup.subtree_control", "+cpu +memory");

	if (!error)
		error = cgroup_make(CG_FROZEN);
	if (!error)
		error = cgroup_make(CG_THROTTLED);
	if (!error)
		error = cgroup_make(CG_SMALL);
	if (!error)
		error = write_file(CG_THROTTLED "/cpu.max", "2000 100000");
	if (!error)
		error = write_file(CG_SMALL "/memory.max", "%d", 16 * MB);
	return error;
}

void targets_restore(void)
{
	rmdir(CG_FROZEN);
	rmdir(CG_THROTTLED);
	rmdir(CG_SMALL);
}

pid_t target_start(const struct target_kind *kind, struct targets_shared *s, pid_t pgrp)
{
	pid_t pid = fork();

	if (!pid) {
		need(!setpgid(0, pgrp));
		kind->body(s);
		_exit(2);
	}
	return pid;
}

void outside_tracer(struct targets_shared *s)
{
	pid_t pid = s->traced;
	int status;

	need(!ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT));
	s->tracer_ready = pid;
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) {
			sleep_ms(20);
			s->saw_exit_event = 1;
		}
		ptrace(PTRACE_CONT, pid, 0, 0);
	}
}

void outside_futex_waiter(struct targets_shared *s)
{
	uint32_t value;

	while (!((value = s->futex) & FUTEX_OWNER_DIED))
		syscall(SYS_futex, &s->futex, FUTEX_WAIT, value, NULL, NULL, 0);
	s->futex_died = 1;
}
