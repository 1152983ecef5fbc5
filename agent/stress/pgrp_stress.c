// SPDX-License-Identifier: GPL-2.0
/*
 * When the parent of a process group dies, the group may lose its last connection to the rest
 * of its session. If a member is stopped then, all members must get SIGHUP and SIGCONT
 * (POSIX 3.2.2.2); in every other case none may. In each scene a process of the session makes
 * the parent, the parent makes the members, and dies.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/kmsg.h"
#include "lib/tasks.h"
#include "workload.h"

#define MEMBERS_MAX 8
#define GROUPS 3
#define LIMIT_MS 30000
/* How long it is watched that no signal comes. */
#define NONE_MS 100

/*
 * Two characters for each member, in the order of the parent's children: what it is, and the
 * number of its group; 0 is the group of the parent.
 *	r	runs
 *	s	is stopped
 *	m	is stopped, and was moved to its group then
 *	a	is stopped again, after it was stopped and continued, and another member exited
 *	z	has exited, and was not reaped
 *	g	has exited, after it made a child in its group, which stopped later
 *	l	is a leader that has exited, with a thread that lives
 *	o	runs, and is no child of the parent but of its parent, which lives
 */
static const struct scene {
	const char *name, *members;
	const char *signaled; /* the groups that get the signals */
	/*
	 * A group that was orphaned before its member was stopped. This exit does not orphan
	 * it, but Linux has always sent the signals then: both are right.
	 */
	const char *before;
	/* The parent, the parent in a session with a subreaper, or only a thread of the parent. */
	enum { PROCESS, IN_SESSION, THREAD } dies;
} scenes[] = {
	{"one", "s1", "1", "", PROCESS},
	{"two", "s1s1", "1", "", PROCESS},
	{"zombies first", "z1z1s1", "1", "", PROCESS},
	{"zombies last", "s1z1z1", "1", "", PROCESS},
	{"one runs", "r1s1", "1", "", PROCESS},
	{"none is stopped", "r1r1z1", "", "", PROCESS},
	{"two groups", "s1z1s2z2", "12", "", PROCESS},
	{"groups alternate", "s1s2z1z2s1s2", "12", "", PROCESS},
	{"still connected", "s1z1o1", "", "", PROCESS},
	{"one of two still connected", "s1o1z1s2", "2", "", PROCESS},
	{"the group of the parent", "s0z0s1", "1", "", PROCESS},
	{"orphaned before", "g1", "", "1", PROCESS},
	{"a leader has exited, last", "g1l1", "1", "", PROCESS},
	{"a leader has exited, first", "l1g1", "1", "", PROCESS},
	{"moved when it was stopped", "r1m1", "1", "", PROCESS},
	{"stopped again", "r1a1", "1", "", PROCESS},
	{"a new parent in the session", "s1z1s2", "", "", IN_SESSION},
	{"a thread of the parent", "s1z1s2", "", "", THREAD},
};

static struct shared {
	volatile enum { MAKING, MADE, GO, DEAD } state;
	volatile int error, line;
	struct member {
		volatile pid_t pid;
		volatile bool ready;
		volatile int hups, conts;
	} members[MEMBERS_MAX];
	volatile pid_t groups[GROUPS]; /* 0 is not used */
} * shared;

static struct member *self;
static int log_fd = -1;

/* Ends the process if the call failed; the scene fails then. */
static void must(bool ok, int line)
{
	if (ok)
		return;
	shared->error = errno ? errno : EINVAL;
	shared->line = line;
	_exit(1);
}

#define MUST(call) must((call) != -1, __LINE__)

static void wait_until(int state)
{
	while ((int)shared->state < state)
		sleep_ms(1);
}

static void count_hup(int signal)
{
	(void)signal;
	self->hups++;
}

static void count_cont(int signal)
{
	(void)signal;
	self->conts++;
}

/* The first member of a group leads it. Called on both sides of a fork. */
static void join(pid_t pid, int group)
{
	if (!group)
		return;
	if (!shared->groups[group])
		shared->groups[group] = pid;
	MUST(setpgid(pid, shared->groups[group]));
}

static _Noreturn void stay(void)
{
	self->ready = true;
	for (;;)
		pause();
}

/* Goes on in a child, which waits until its parent has exited, so that the group is orphaned. */
static void exit_before_child(void)
{
	pid_t parent = getpid(), pid = fork();

	MUST(pid);
	if (pid) {
		self->pid = pid;
		_exit(0);
	}
	while (getppid() == parent)
		sleep_ms(1);
}

static void *stay_on(void *unused)
{
	(void)unused;
	stay();
}

/* Only a thread goes on. */
static _Noreturn void exit_leader(void)
{
	pthread_t thread;

	must(!pthread_create(&thread, NULL, stay_on, NULL), __LINE__);
	syscall(SYS_exit, 0);
	__builtin_unreachable();
}

static _Noreturn void be_member(char what, int group)
{
	if (what != 'm')
		join(getpid(), group);
	signal(SIGHUP, count_hup);
	signal(SIGCONT, count_cont);
	if (what == 'z')
		_exit(0);
	if (what == 'g')
		exit_before_child();
	if (what == 'l')
		exit_leader();
	if (strchr("smga", what))
		MUST(raise(SIGSTOP));
	stay();
}

/* A member is continued, another one exits and is not reaped, and the first is stopped again. */
static void stop_again(struct member *member, int group)
{
	pid_t other;

	MUST(kill(member->pid, SIGCONT));
	while (!member->ready)
		sleep_ms(1);
	other = fork();
	MUST(other);
	if (!other) {
		join(getpid(), group);
		_exit(0);
	}
	must(task_wait_state(other, 'Z', LIMIT_MS), __LINE__);
	MUST(kill(member->pid, SIGSTOP));
	must(task_wait_state(member->pid, 'T', LIMIT_MS), __LINE__);
	member->conts = 0;
}

static void make_member(struct member *member, char what, int group)
{
	pid_t pid;

	self = member;
	pid = fork();
	MUST(pid);
	if (!pid)
		be_member(what, group);
	if (strchr("zgl", what)) {
		must(task_wait_state(pid, 'Z', LIMIT_MS), __LINE__);
	} else {
		member->pid = pid;
		if (what != 'm')
			join(pid, group);
	}
	if (strchr("smga", what))
		must(task_wait_state(member->pid, 'T', LIMIT_MS), __LINE__);
	if (what == 'a')
		stop_again(member, group);
	if (what == 'm')
		join(pid, group);
	while (strchr("rol", what) && !member->ready)
		sleep_ms(1);
}

static void make_members(const struct scene *scene, bool others)
{
	for (int i = 0; scene->members[2 * i]; i++) {
		char what = scene->members[2 * i];

		if ((what == 'o') == others)
			make_member(&shared->members[i], what, scene->members[2 * i + 1] - '0');
	}
}

static void *live_and_die(void *scene)
{
	make_members(scene, false);
	shared->state = MADE;
	wait_until(GO);
	return NULL;
}

static _Noreturn void be_parent(const struct scene *scene)
{
	pthread_t thread;

	if (scene->dies != THREAD) {
		live_and_die((void *)scene);
		_exit(0);
	}
	must(!pthread_create(&thread, NULL, live_and_die, (void *)scene), __LINE__);
	must(!pthread_join(thread, NULL), __LINE__);
	shared->state = DEAD;
	for (;;)
		pause();
}

/* Stays until it is killed: its exit would orphan groups, too. */
static _Noreturn void be_session(const struct scene *scene)
{
	pid_t parent;

	MUST(setsid());
	if (scene->dies == IN_SESSION)
		MUST(prctl(PR_SET_CHILD_SUBREAPER, 1));
	parent = fork();
	MUST(parent);
	if (!parent)
		be_parent(scene);
	wait_until(MADE);
	make_members(scene, true);
	shared->state = GO;
	if (scene->dies != THREAD) {
		MUST(waitpid(parent, NULL, 0));
		shared->state = DEAD;
	}
	for (;;)
		pause();
}

/* Whether each member has got each of the signals so often as it should. */
static bool as_expected(const struct scene *scene, bool signaled)
{
	for (int i = 0; scene->members[2 * i]; i++) {
		const struct member *member = &shared->members[i];
		int expected = strchr(scene->signaled, scene->members[2 * i + 1]) ? 1 : 0;

		if (scene->members[2 * i] == 'z' || expected != signaled)
			continue;
		if (strchr(scene->before, scene->members[2 * i + 1]))
			continue;
		if (member->hups != expected || member->conts != expected)
			return false;
	}
	return true;
}

/* How many members of groups that were orphaned before have got both signals. */
static int64_t signaled_before(const struct scene *scene)
{
	int64_t members = 0;

	for (int i = 0; scene->members[2 * i]; i++)
		if (strchr(scene->before, scene->members[2 * i + 1]))
			members += shared->members[i].hups && shared->members[i].conts;
	return members;
}

static void check_scene(struct trial *t, const struct scene *scene)
{
	int64_t end = now_ns() + LIMIT_MS * 1000000LL;

	while (!as_expected(scene, true) && now_ns() < end)
		sleep_ms(1);
	wl_check(t, "signaled", as_expected(scene, true),
		 "%s: no SIGHUP and SIGCONT, or more than one", scene->name);
	sleep_ms(NONE_MS);
	wl_check(t, "not_signaled", as_expected(scene, false), "%s: SIGHUP or SIGCONT",
		 scene->name);
	if (*scene->before)
		wl_sample(t, "signaled_before_count", signaled_before(scene));
}

/* Kills the groups; what has no other parent is a child of the agent then. */
static bool clean_up(pid_t session)
{
	bool gone;

	for (int i = 1; i < GROUPS; i++)
		if (shared->groups[i])
			kill(-shared->groups[i], SIGKILL);
	kill(-session, SIGKILL);
	gone = group_reap(session, LIMIT_MS);
	for (int i = 1; i < GROUPS; i++)
		gone = gone && (!shared->groups[i] || group_reap(shared->groups[i], LIMIT_MS));
	return gone;
}

static int run_scene(struct trial *t, const struct scene *scene)
{
	int64_t end = now_ns() + LIMIT_MS * 1000000LL;
	pid_t session;

	memset(shared, 0, sizeof(*shared));
	session = fork();
	if (session < 0)
		return wl_fail(t, "cannot fork: %m");
	if (!session)
		be_session(scene);
	while (shared->state != DEAD && !shared->error && now_ns() < end)
		sleep_ms(1);
	if (shared->state == DEAD)
		check_scene(t, scene);
	wl_check(t, "all_gone", clean_up(session), "%s: tasks are left", scene->name);
	if (shared->state == DEAD)
		return 0;
	return wl_fail(t, "%s: line %d: %s", scene->name, shared->line,
		       shared->error ? strerror(shared->error) : "too slow");
}

static int run(struct trial *t)
{
	struct kmsg m;
	int got;

	for (size_t i = 0; i < ARRAY_SIZE(scenes); i++)
		if (run_scene(t, &scenes[i]))
			return -1;
	got = kmsg_problem(log_fd, &m);
	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
	wl_sample(t, "scenes_count", ARRAY_SIZE(scenes));
	return 0;
}

static int setup(struct trial *t)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	log_fd = kmsg_open();
	if (shared == MAP_FAILED || log_fd < 0)
		return wl_fail(t, "cannot prepare memory and files: %m");
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	close(log_fd);
	munmap(shared, sizeof(*shared));
}

static const char *const params[] = {NULL};
static const struct workload pgrp_stress = {
	.name = "pgrp_stress",
	.summary =
		"let the parent of process groups die, and see which groups get SIGHUP and SIGCONT",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(pgrp_stress);
