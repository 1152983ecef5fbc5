// SPDX-License-Identifier: GPL-2.0
/*
 * Closing a userfaultfd must detach it from every mapping, wherever the mapping has got to
 * since it was registered: a mapping that is left refers to freed memory. In each scene a
 * process registers memory and changes it. The agent, which shares the process's file
 * descriptors and not its memory, reads the events, closes the userfaultfds, and looks for
 * mappings that are still registered. What was split for a userfaultfd must then be one
 * mapping again: the number of mappings of a process is limited.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/kmsg.h"
#include "lib/tasks.h"
#include "workload.h"

#define PAGE 4096
/* Each scene has this much address space, of which nothing is mapped. */
#define SPACE (16L << 20)
#define MIDDLE (SPACE / 2)
#define FDS_MAX 8
#define LIMIT_MS 30000

enum state { CHANGING, CHANGED, TOUCH };

static struct shared {
	volatile enum state state;
	char *space;
	int fds[FDS_MAX];
	int fds_count;
	volatile pid_t child; /* of a scene that forks */
	volatile int error, line;
} * shared;

static int log_fd = -1, zeros_fd = -1;

/* What a scene's mappings are of, and how they are registered. */
static const struct memory {
	const char *name;
	bool file;
	uint64_t mode;
} memories[] = {
	{"anonymous memory", false, UFFDIO_REGISTER_MODE_MISSING},
	{"anonymous memory, write-protected", false, UFFDIO_REGISTER_MODE_WP},
	{"a memfd", true, UFFDIO_REGISTER_MODE_MISSING},
	{"a memfd, write-protected", true, UFFDIO_REGISTER_MODE_WP},
};
static const struct memory *memory;

/* A process with memory of its own; so the agent closes the last reference to a userfaultfd. */
static pid_t fork_with_files(void)
{
	return (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
}

/* Ends the process of the scene if the call fails. */
static void must(bool ok, int line)
{
	if (ok)
		return;
	shared->error = errno ? errno : EINVAL;
	shared->line = line;
	_exit(1);
}

#define MUST(call) must((call) != -1, __LINE__)

static char *map(long at, long pages, int flags)
{
	int file = -1;
	char *got;

	if (memory->file) {
		file = memfd_create("scene", MFD_CLOEXEC);
		MUST(file);
		MUST(ftruncate(file, SPACE));
	}
	flags |= memory->file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	got = mmap(shared->space + at, pages * PAGE, PROT_READ | PROT_WRITE,
		   MAP_FIXED_NOREPLACE | flags, file, memory->file ? at : 0);
	must(got != MAP_FAILED, __LINE__);
	/* The agent has the same file descriptors. */
	if (memory->file)
		close(file);
	/*
	 * Only pages that are there can be protected. They have one anon_vma: mappings with
	 * pages of several would not be merged.
	 */
	for (long i = 0; memory->mode == UFFDIO_REGISTER_MODE_WP && i < pages; i++)
		got[i * PAGE] = 0;
	return got;
}

/* No fault waits: with this feature it gives SIGBUS, and EFAULT in a system call. */
static int make(uint64_t features)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS | features};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	MUST(fd);
	MUST(ioctl(fd, UFFDIO_API, &api));
	shared->fds[shared->fds_count++] = fd;
	return fd;
}

static void attach(int fd, char *at, long pages)
{
	struct uffdio_register what = {.range = {(uintptr_t)at, pages * PAGE},
				       .mode = memory->mode};
	struct uffdio_writeprotect protect = {.range = what.range,
					      .mode = UFFDIO_WRITEPROTECT_MODE_WP};

	MUST(ioctl(fd, UFFDIO_REGISTER, &what));
	if (memory->mode != UFFDIO_REGISTER_MODE_WP)
		return;
	MUST(ioctl(fd, UFFDIO_WRITEPROTECT, &protect));
}

/* Both ends of a mapping stay as they are. */
static void part(void)
{
	attach(make(0), map(MIDDLE, 9, 0) + 3 * PAGE, 3);
}

static void splits(void)
{
	char *at = map(MIDDLE, 9, 0);

	attach(make(0), at, 9);
	MUST(munmap(at + 2 * PAGE, PAGE));
	MUST(mprotect(at + 5 * PAGE, PAGE, PROT_READ));
	MUST(madvise(at + 7 * PAGE, PAGE, MADV_DONTFORK));
}

static void merges(void)
{
	char *at = map(MIDDLE, 9, 0);
	int fd = make(0);

	attach(fd, at, 3);
	attach(fd, at + 6 * PAGE, 3);
	attach(fd, at + 3 * PAGE, 3);
}

static void interleaved(void)
{
	char *at = map(MIDDLE, 12, 0);
	int fds[] = {make(0), make(0), make(0)};

	for (int i = 0; i < 12; i++)
		attach(fds[i % 3], at + i * PAGE, 1);
}

static void nothing(void)
{
	make(0);
}

/* Only what was not registered, and was added to the mapping later, is left of it. */
static void grows(void)
{
	char *at = map(MIDDLE, 4, 0);

	attach(make(UFFD_FEATURE_EVENT_REMAP), at, 4);
	must(mremap(at, 4 * PAGE, 8 * PAGE, 0) == at, __LINE__);
	MUST(munmap(at, 4 * PAGE));
}

static void grows_down(void)
{
	char *at = map(MIDDLE, 4, MAP_GROWSDOWN);

	attach(make(0), at, 4);
	if (memory->mode == UFFDIO_REGISTER_MODE_WP)
		must(read(zeros_fd, at - 2 * PAGE, 1) == 1, __LINE__);
	else
		must(read(zeros_fd, at - 2 * PAGE, 1) == -1 && errno == EFAULT, __LINE__);
	MUST(munmap(at, 4 * PAGE));
}

static void move(char *from, long pages, long to, int flags)
{
	char *at = shared->space + to;

	must(mremap(from, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | flags, at) ==
		     at,
	     __LINE__);
}

static void moves(void)
{
	char *at = map(MIDDLE, 9, 0);

	attach(make(UFFD_FEATURE_EVENT_REMAP), at, 9);
	move(at, 3, PAGE, 0);
	move(at + 6 * PAGE, 3, SPACE - 3 * PAGE, 0);
	move(at + 3 * PAGE, 3, SPACE / 4, MREMAP_DONTUNMAP);
}

/* A context that does not want to know of the move loses the mapping. */
static void moves_unseen(void)
{
	char *at = map(MIDDLE, 9, 0);

	attach(make(0), at, 9);
	move(at, 3, PAGE, 0);
	move(at + 6 * PAGE, 3, SPACE - 3 * PAGE, 0);
}

static void check_zeros(void);

/* The child stays until the userfaultfds are closed; then it looks at its own memory. */
static void fork_child(void)
{
	pid_t pid = fork_with_files();

	MUST(pid);
	if (pid) {
		shared->child = pid;
		return;
	}
	while (shared->state != TOUCH)
		sleep_ms(1);
	check_zeros();
	_exit(0);
}

static void forks(void)
{
	char *at = map(MIDDLE, 9, 0);

	attach(make(UFFD_FEATURE_EVENT_FORK), at, 2);
	attach(make(0), at + 3 * PAGE, 2);
	attach(make(UFFD_FEATURE_EVENT_FORK), at + 6 * PAGE, 2);
	attach(shared->fds[0], map(MIDDLE + SPACE / 4, 2, 0), 2);
	fork_child();
}

/* The context of a child, too, follows what moves and grows. */
static void forks_and_moves(void)
{
	char *at = map(MIDDLE, 9, 0);

	attach(make(UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP), at, 4);
	move(at, 4, PAGE, 0);
	must(mremap(shared->space + PAGE, 4 * PAGE, 8 * PAGE, 0) == shared->space + PAGE, __LINE__);
	MUST(munmap(shared->space + PAGE, 4 * PAGE));
	fork_child();
}

/*
 * kb is what is registered before the first close, each_kb what each close releases of it,
 * mappings the number that the process, without its child, has after the last close.
 */
static const struct scene {
	const char *name;
	void (*change)(void);
	long kb, each_kb, mappings;
} scenes[] = {
	{"never registered", nothing, 0, 0, 0},
	{"a part of a mapping", part, 12, 12, 1},
	{"split", splits, 32, 32, 6},
	{"merged", merges, 36, 36, 1},
	{"interleaved", interleaved, 48, 16, 1},
	{"grown", grows, 16, 16, 1},
	{"grown down", grows_down, 8, 8, 1},
	{"moved", moves, 48, 48, 4},
	{"moved without an event", moves_unseen, 12, 12, 3},
	{"forked", forks, 56, 0, 2},
	{"moved, grown and forked", forks_and_moves, 32, 16, 2},
};

/* What the process has mapped for the scene, and registered with any userfaultfd. */
struct mapped {
	long count, registered_kb;
};

static struct mapped mapped(pid_t pid)
{
	static char path[64], line[512];
	unsigned long from, to, size = 0, space = (uintptr_t)shared->space;
	struct mapped got = {0};
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
	file = fopen(path, "re");
	if (!file)
		return (struct mapped){-1, -1};
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			size = to - from;
			got.count += from >= space && to <= space + SPACE;
		}
		if (!strncmp(line, "VmFlags:", 8) && (strstr(line, " um") || strstr(line, " uw")))
			got.registered_kb += size >> 10;
	}
	fclose(file);
	return got;
}

/* Every page of the scene that is mapped for reading must be there, and empty. */
static void check_zeros(void)
{
	static char page[PAGE], zeros[PAGE];
	char *at = shared->space;
	int fds[2];

	MUST(pipe(fds));
	for (char *end = at + SPACE; at < end; at += PAGE) {
		unsigned char there;

		if (mincore(at, PAGE, &there)) {
			must(errno == ENOMEM, __LINE__);
			continue;
		}
		/* A page that is still registered gives EFAULT. */
		must(write(fds[1], at, PAGE) == PAGE, __LINE__);
		must(read(fds[0], page, PAGE) == PAGE && !memcmp(page, zeros, PAGE), __LINE__);
	}
}

static void play(const struct scene *scene)
{
	shared->space = mmap(NULL, SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(shared->space != MAP_FAILED, __LINE__);
	MUST(munmap(shared->space, SPACE));
	scene->change();
	shared->state = CHANGED;
	while (shared->state != TOUCH)
		sleep_ms(1);
	check_zeros();
	if (shared->child)
		must(task_reap(shared->child, LIMIT_MS) == 0, __LINE__);
	_exit(0);
}

/* A mapping that moves, and a process that forks, wait until the event was read. */
static void read_events(void)
{
	struct uffd_msg msg;

	for (int i = 0; i < shared->fds_count; i++)
		while (read(shared->fds[i], &msg, sizeof(msg)) == sizeof(msg))
			if (msg.event == UFFD_EVENT_FORK)
				shared->fds[shared->fds_count++] = (int)msg.arg.fork.ufd;
}

static long registered_kb_of_both(pid_t pid)
{
	return mapped(pid).registered_kb +
	       (shared->child ? mapped(shared->child).registered_kb : 0);
}

/* Closes all, the first or the last first. The kB that are registered then. */
static long close_all(const struct scene *scene, pid_t pid, bool last_first, bool *others_kept)
{
	int count = shared->fds_count;
	long kb = scene->kb;

	*others_kept = true;
	for (int i = 0; i < count; i++) {
		close(shared->fds[last_first ? count - 1 - i : i]);
		kb = registered_kb_of_both(pid);
		if (scene->each_kb && kb < scene->kb - (i + 1) * scene->each_kb)
			*others_kept = false;
	}
	return kb;
}

static void check_scene(struct trial *t, const struct scene *scene, pid_t pid, bool last_first)
{
	long kb = registered_kb_of_both(pid), mappings;
	bool others_kept;

	wl_check(t, "followed", kb == scene->kb, "%s: %ld kB are registered, not %ld (%s)",
		 scene->name, kb, scene->kb, memory->name);
	kb = close_all(scene, pid, last_first, &others_kept);
	wl_check(t, "others_kept", others_kept, "%s: a close released what another registered (%s)",
		 scene->name, memory->name);
	mappings = mapped(pid).count;
	wl_check(t, "merged", mappings == scene->mappings,
		 "%s: %ld mappings are left, not %ld (%s)", scene->name, mappings, scene->mappings,
		 memory->name);
	if (!wl_check(t, "released", kb == 0, "%s: %ld kB are still registered (%s)", scene->name,
		      kb, memory->name)) {
		/* They refer to freed memory: no process may touch them. */
		if (shared->child)
			kill(shared->child, SIGKILL);
		kill(pid, SIGKILL);
	}
	shared->state = TOUCH;
	wl_check(t, "empty_pages", task_reap(pid, LIMIT_MS) == 0 || kb, "%s: line %d: %s (%s)",
		 scene->name, shared->line, strerror(shared->error), memory->name);
}

static int run_scene(struct trial *t, const struct scene *scene, bool last_first)
{
	int64_t end = now_ns() + LIMIT_MS * 1000000LL;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork_with_files();
	if (pid < 0)
		return wl_fail(t, "cannot clone: %m");
	if (!pid)
		play(scene);
	while (shared->state == CHANGING && !shared->error && now_ns() < end) {
		read_events();
		sleep_ms(1);
	}
	if (shared->state == CHANGED) {
		check_scene(t, scene, pid, last_first);
		return 0;
	}
	kill(pid, SIGKILL);
	task_reap(pid, LIMIT_MS);
	return wl_fail(t, "%s: line %d: %s (%s)", scene->name, shared->line,
		       shared->error ? strerror(shared->error) : "too slow", memory->name);
}

static int run(struct trial *t)
{
	struct kmsg m;
	int got, scenes_played = 0;

	for (memory = memories; memory < memories + ARRAY_SIZE(memories); memory++)
		for (size_t i = 0; i < 2 * ARRAY_SIZE(scenes); i++) {
			/* MAP_GROWSDOWN is for anonymous memory. */
			if (memory->file && scenes[i / 2].change == grows_down)
				continue;
			if (run_scene(t, &scenes[i / 2], i % 2))
				return -1;
			scenes_played++;
		}
	got = kmsg_problem(log_fd, &m);
	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
	wl_sample(t, "scenes_count", scenes_played);
	return 0;
}

static int setup(struct trial *t)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	zeros_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	log_fd = kmsg_open();
	if (shared == MAP_FAILED || zeros_fd < 0 || log_fd < 0)
		return wl_fail(t, "cannot prepare memory and files: %m");
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	close(zeros_fd);
	close(log_fd);
	munmap(shared, sizeof(*shared));
}

static const char *const params[] = {NULL};
static const struct workload uffd_close = {
	.name = "uffd_close",
	.summary = "close userfaultfds whose mappings were split, moved, grown or forked, and look "
		   "for mappings that are still registered",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(uffd_close);
