// SPDX-License-Identifier: GPL-2.0
#include "hunt/owner.h"

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#define ORDINARY_UID 65534
/* What an ordinary user may have with systemd, on 16 GiB; also in src/kteardown_hunt/limits.py. */
#define DESCRIPTORS_OF_A_USER 524288
#define TASKS_OF_A_USER 42213

const char *const way_names[] = {"exit", "call", "oldest", "youngest", "random", NULL};
int64_t nr_objects, nr_residents;

static struct owner_report *report;
/* Used if no shared memory can be mapped. */
static struct owner_report unshared;
static bool ordinary_user;
static int ready_ends[2], to_parent = -1;

extern const struct kind *const __start_kinds[], *const __stop_kinds[];

const struct kind *kind_at(int index)
{
	return index < __stop_kinds - __start_kinds ? __start_kinds[index] : NULL;
}

const struct kind *kind_named(const char *name)
{
	const struct kind *k;
	int i;

	for (i = 0; (k = kind_at(i)); i++)
		if (!strcmp(k->name, name))
			break;
	return k;
}

bool kind_has_way(const struct kind *k, enum way way)
{
	switch (way) {
	case WAY_EXIT:
		return k->open || k->exit;
	case WAY_CALL:
		return k->release;
	default:
		return k->open || k->remove;
	}
}

int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* -- what kinds use -- */

static void note_failed(const char *call)
{
	report->error = errno;
	snprintf(report->call, sizeof(report->call), "%s", call);
}

void owner_failed(const char *call)
{
	note_failed(call);
	/* Children may hold the pipe open, so that its end would not be seen. */
	if (write(to_parent, "x", 1) != 1)
		abort();
	_exit(1);
}

int put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		error = -errno;
	close(fd);
	return error;
}

void *array_of(int64_t number, size_t element)
{
	/* None would be no mapping. */
	size_t size = (number ? number : 1) * element;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	MUST((long)memory);
	return memory;
}

void *array(size_t element)
{
	return array_of(nr_objects, element);
}

void new_namespaces(int flags)
{
	char uids[32], gids[32];

	if (!ordinary_user) {
		MUST(unshare(flags));
		return;
	}
	snprintf(uids, sizeof(uids), "0 %d 1", geteuid());
	snprintf(gids, sizeof(gids), "0 %d 1", getegid());
	MUST(unshare(flags | CLONE_NEWUSER));
	put_file("/proc/self/setgroups", "deny");
	MUST(put_file("/proc/self/uid_map", uids) ? -1 : 0);
	MUST(put_file("/proc/self/gid_map", gids) ? -1 : 0);
}

pid_t child(unsigned long flags, bool dies)
{
	pid_t pid = MUST(syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0));

	if (!pid && dies)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

void wait_to_be_killed(void)
{
	for (;;)
		pause();
}

void ready_make(void)
{
	MUST(pipe2(ready_ends, O_CLOEXEC));
}

void ready_say(void)
{
	MUST(write(ready_ends[1], "r", 1));
}

void ready_wait(void)
{
	char c;

	close(ready_ends[1]);
	if (read(ready_ends[0], &c, 1) != 1)
		owner_failed("read() from a child");
	close(ready_ends[0]);
}

/* -- limits -- */

static void raise_limit(int resource, rlim_t value)
{
	struct rlimit limit = {value, value};

	/* An ordinary user may only raise the soft limit. */
	if (setrlimit(resource, &limit) && !getrlimit(resource, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resource, &limit);
	}
}

static void raise_limits_of_root(void)
{
	raise_limit(RLIMIT_NOFILE, 1000000);
	raise_limit(RLIMIT_NPROC, RLIM_INFINITY);
	raise_limit(RLIMIT_SIGPENDING, RLIM_INFINITY);
	raise_limit(RLIMIT_MSGQUEUE, RLIM_INFINITY);
	raise_limit(RLIMIT_MEMLOCK, RLIM_INFINITY);
}

static void become_ordinary_user(void)
{
	/* A reproducer may have been started by an ordinary user. */
	if (!geteuid()) {
		/* Those of the kernel itself are lower. */
		raise_limit(RLIMIT_NOFILE, DESCRIPTORS_OF_A_USER);
		raise_limit(RLIMIT_NPROC, TASKS_OF_A_USER);
		MUST(setgroups(0, NULL));
		MUST(setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID));
		MUST(setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID));
	}
	/* Otherwise the files of /proc/self belong to root. */
	prctl(PR_SET_DUMPABLE, 1);
	raise_limit(RLIMIT_NOFILE, RLIM_INFINITY);
}

/* -- the owner -- */

/* The order in which the objects are released one by one. */
static int32_t *order_of(const struct owner_spec *spec)
{
	int32_t *order = array(sizeof(*order));
	uint64_t random = spec->seed;
	int64_t i, n = nr_objects;

	for (i = 0; i < n; i++)
		order[i] = spec->way == WAY_YOUNGEST ? n - 1 - i : i;
	for (i = n - 1; i > 0 && spec->way == WAY_RANDOM; i--) {
		int64_t other;
		int32_t swapped = order[i];

		/* Knuth's generator; its upper bits are the good ones. */
		random = random * 6364136223846793005 + 1442695040888963407;
		other = (random >> 33) % (i + 1);
		order[i] = order[other];
		order[other] = swapped;
	}
	return order;
}

static void make_all(const struct kind *k, int32_t *fds)
{
	int64_t i;

	if (k->make)
		k->make();
	for (i = 0; i < nr_objects && k->open; i++)
		fds[i] = k->open(i);
	for (i = 0; i < nr_objects && k->add; i++)
		k->add(i);
}

static void release_all(const struct owner_spec *spec, const int32_t *fds, const int32_t *order)
{
	const struct kind *k = spec->kind;
	int64_t i;

	if (spec->way == WAY_CALL) {
		k->release();
		return;
	}
	for (i = 0; i < nr_objects; i++)
		if (k->remove)
			k->remove(order[i]);
		else
			close(fds[order[i]]);
}

/* How often this process gave up the CPU, and so did the children that it has waited for. */
static int64_t waits_so_far(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return self.ru_nvcsw + children.ru_nvcsw;
}

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	MUST(sched_setaffinity(0, sizeof(set), &set));
}

static void own(const struct owner_spec *spec, int from, int to)
{
	const struct kind *k = spec->kind;
	int32_t *order = NULL, *fds;
	int64_t began, i;
	char c;

	to_parent = to;
	nr_objects = spec->objects;
	nr_residents = spec->residents;
	if (spec->name)
		prctl(PR_SET_NAME, spec->name);
	ordinary_user = spec->user;
	if (spec->cpu >= 0)
		stay_on(spec->cpu);
	if (spec->user)
		become_ordinary_user();
	else
		raise_limits_of_root();
	MUST(chdir(spec->folder));
	fds = array(sizeof(*fds));
	if (spec->way > WAY_CALL)
		order = order_of(spec);
	if (k->prepare)
		k->prepare();
	for (i = 0; i < nr_residents; i++)
		k->stay(i);
	MUST(write(to, "p", 1));
	if (read(from, &c, 1) != 1)
		wait_to_be_killed();
	began = clock_ns();
	make_all(k, fds);
	report->made_ns = clock_ns() - began;
	report->made_waits = waits_so_far();
	MUST(write(to, "m", 1));
	if (read(from, &c, 1) != 1 || spec->way == WAY_EXIT)
		wait_to_be_killed();
	/* Without the one in which it waited to be told. */
	report->made_waits = waits_so_far();
	report->start_ns = clock_ns();
	release_all(spec, fds, order);
	report->end_ns = clock_ns();
	report->waits = waits_so_far() - report->made_waits;
	if (k->left)
		report->left = k->left();
	MUST(write(to, "d", 1));
	wait_to_be_killed();
}

/* Whether the owner says `what`. False: a call failed, or it is dead; a child may hold its pipe. */
static bool says(struct owner *o, char what)
{
	int pidfd = syscall(SYS_pidfd_open, o->pid, 0);
	struct pollfd on[] = {{.fd = o->from, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
	char c = 0;

	if (pidfd >= 0) {
		poll(on, 2, -1);
		close(pidfd);
	}
	if (pidfd < 0 || on[0].revents & POLLIN)
		return read(o->from, &c, 1) == 1 && c == what;
	return false;
}

bool owner_start(struct owner *o, const struct owner_spec *spec)
{
	int up[2] = {-1, -1}, down[2] = {-1, -1};

	*o = (struct owner){.spec = *spec, .from = -1, .to = -1};
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (report == MAP_FAILED) {
		o->report = report = &unshared;
		note_failed("mmap()");
		return false;
	}
	o->report = report;
	if (pipe2(up, O_CLOEXEC) || pipe2(down, O_CLOEXEC)) {
		note_failed("pipe2()");
		close(up[0]);
		close(up[1]);
		return false;
	}
	o->pid = fork();
	if (o->pid < 0)
		note_failed("fork()");
	if (!o->pid) {
		close(up[0]);
		close(down[1]);
		own(spec, down[0], up[1]);
	}
	close(up[1]);
	close(down[0]);
	o->from = up[0];
	o->to = down[1];
	return o->pid > 0 && says(o, 'p');
}

static void go_on(struct owner *o)
{
	if (write(o->to, "g", 1) != 1)
		o->report->error = errno;
}

bool owner_make(struct owner *o)
{
	go_on(o);
	return says(o, 'm');
}

void owner_release(struct owner *o)
{
	if (o->spec.way == WAY_EXIT)
		kill(o->pid, SIGKILL);
	else
		go_on(o);
}

bool owner_released(struct owner *o)
{
	struct rusage usage;

	if (o->spec.way != WAY_EXIT)
		return says(o, 'd');
	wait4(o->pid, NULL, 0, &usage);
	o->pid = 0;
	o->report->waits = usage.ru_nvcsw - o->report->made_waits;
	return true;
}

void owner_end(struct owner *o)
{
	if (o->pid > 0) {
		kill(o->pid, SIGKILL);
		waitpid(o->pid, NULL, 0);
	}
	close(o->from);
	close(o->to);
	if (o->report != &unshared)
		munmap(o->report, sizeof(*o->report));
}
