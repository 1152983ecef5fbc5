// SPDX-License-Identifier: GPL-2.0
/*
 * Random locks of several owners on one file, and a model of which locks they have. After each
 * step another open file tests every byte. Then leases of one file, which are closed while they
 * are being broken, and processes that are killed while they lock and close.
 */
#define _GNU_SOURCE /* F_OFD_SETLK, CLONE_FILES */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/kmsg.h"
#include "lib/tasks.h"
#include "owners.h"
#include "workload.h"

#define OWNERS 8 /* half of them processes */
#define FLOCKS 8
#define LEASES 16
#define STORM 6 /* processes */
#define LIMIT_MS 10000 /* less than lease-break-time */
#define LEASE_FILE "/lock_stress_leases"

static struct lock_owner owners[OWNERS];
static short held[OWNERS][LOCK_BYTES];
static struct prng prng;
static int observer = -1, log_fd = -1;

static int below(int bound)
{
	return (int)prng_below(&prng, (uint64_t)bound);
}

/* -- byte-range locks and the model -- */

static bool model_allows(int owner, const struct request *r)
{
	for (int o = 0; o < OWNERS; o++)
		for (int b = r->first; o != owner && b < r->first + r->bytes; b++)
			if (r->type != F_UNLCK && held[o][b] != F_UNLCK &&
			    (r->type == F_WRLCK || held[o][b] == F_WRLCK))
				return false;
	return true;
}

static void forget(int owner)
{
	for (int b = 0; b < LOCK_BYTES; b++)
		held[owner][b] = F_UNLCK;
}

/* What a new lock of this type on one byte would meet, according to the model. */
static bool model_blocks(int byte, short type)
{
	struct request r = {.type = type, .first = byte, .bytes = 1};

	return !model_allows(-1, &r);
}

static bool kernel_blocks(int byte, short type)
{
	struct flock lock = {.l_type = type, .l_start = byte, .l_len = 1};

	return !fcntl(observer, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

static struct request random_request(void)
{
	static const short types[] = {F_RDLCK, F_WRLCK, F_UNLCK};
	struct request r = {.order = ORDER_SET, .type = types[below(3)]};

	if (below(4) == 0)
		r.order = (enum order)(1 + below(NR_ORDERS - 1));
	r.first = below(LOCK_BYTES);
	r.bytes = 1 + below(LOCK_BYTES - r.first);
	return r;
}

/* Execute one step of one owner. False if the kernel's answer differs from the model's. */
static bool step(int owner)
{
	struct request r = random_request();
	int result;

	if (below(32) == 0) {
		bool process = owners[owner].pid;

		owner_stop(&owners[owner]);
		forget(owner);
		return !start_owner(&owners[owner], process);
	}
	result = owner_do(&owners[owner], &r);
	if (r.order != ORDER_SET) {
		if (!owner_keeps(&owners[owner], r.order))
			forget(owner);
		return result == 0;
	}
	if (!model_allows(owner, &r))
		return result == EAGAIN;
	for (int b = r.first; b < r.first + r.bytes; b++)
		held[owner][b] = r.type;
	return result == 0;
}

static int wrong_byte(void)
{
	for (int b = 0; b < LOCK_BYTES; b++)
		if (model_blocks(b, F_RDLCK) != kernel_blocks(b, F_RDLCK) ||
		    model_blocks(b, F_WRLCK) != kernel_blocks(b, F_WRLCK))
			return b;
	return -1;
}

static bool byte_locks(struct trial *t, int64_t steps)
{
	int byte = -1, owner;
	bool ok = true;
	int64_t i;

	for (owner = 0; owner < OWNERS && ok; owner++) {
		forget(owner);
		ok = !start_owner(&owners[owner], owner % 2);
	}
	for (i = 0; i < steps && ok && byte < 0; i++) {
		ok = step(below(OWNERS));
		byte = wrong_byte();
	}
	for (owner = 0; owner < OWNERS; owner++) {
		owner_stop(&owners[owner]);
		forget(owner);
	}
	wl_check(t, "granted", ok, "step %lld", (long long)i);
	wl_check(t, "held", byte < 0, "step %lld: byte %d", (long long)i, byte);
	return ok && byte < 0;
}

/* -- flocks: one lock of each open file -- */

static int flock_allowed(const int *types, int file, int type)
{
	for (int i = 0; i < FLOCKS; i++)
		if (i != file && types[i] != LOCK_UN && (type == LOCK_EX || types[i] == LOCK_EX))
			return false;
	return true;
}

static bool flock_step(int *fds, int *types)
{
	static const int choices[] = {LOCK_SH, LOCK_SH, LOCK_EX, LOCK_UN};
	int file = below(FLOCKS), type = choices[below(4)];
	bool allowed = type == LOCK_UN || type == types[file] || flock_allowed(types, file, type);

	if (below(4) == 0) {
		close(fds[file]);
		fds[file] = open(LOCK_FILE, O_RDWR);
		types[file] = LOCK_UN;
		return fds[file] >= 0;
	}
	/* A lock that cannot be converted is lost. */
	types[file] = allowed ? type : LOCK_UN;
	return !flock(fds[file], type | LOCK_NB) == allowed;
}

static bool observed_flock(const int *types, int type)
{
	bool got = !flock(observer, type | LOCK_NB);

	flock(observer, LOCK_UN);
	return got == flock_allowed(types, -1, type);
}

static void flocks(struct trial *t, int64_t steps)
{
	int fds[FLOCKS], types[FLOCKS];
	bool ok = true;
	int64_t i;

	for (int f = 0; f < FLOCKS; f++) {
		fds[f] = open(LOCK_FILE, O_RDWR);
		types[f] = LOCK_UN;
	}
	for (i = 0; i < steps && ok; i++)
		ok = flock_step(fds, types) && observed_flock(types, LOCK_SH) &&
		     observed_flock(types, LOCK_EX);
	for (int f = 0; f < FLOCKS; f++)
		close(fds[f]);
	wl_check(t, "flocks", ok, "step %lld", (long long)i);
}

/* -- leases -- */

static bool lease_step(int *fds, bool *leased)
{
	int f = below(LEASES), type = below(2) ? F_RDLCK : F_UNLCK;

	if (below(3) == 0) {
		close(fds[f]);
		fds[f] = open(LEASE_FILE, O_RDONLY);
		leased[f] = false;
	} else if (type == F_RDLCK || leased[f]) {
		if (fcntl(fds[f], F_SETLEASE, type))
			return false;
		leased[f] = type == F_RDLCK;
	}
	for (f = 0; f < LEASES; f++)
		if (fcntl(fds[f], F_GETLEASE) != (leased[f] ? F_RDLCK : F_UNLCK))
			return false;
	return true;
}

/* Another process opens the file for writing, which breaks the leases, and waits for their end. */
static bool break_while_closing(int *fds)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		_exit(open(LEASE_FILE, O_WRONLY) < 0);
	}
	for (int left = LEASES; left > 0; left--) {
		int f = below(left);

		if (left == LEASES / 2)
			sleep_ms(1);
		close(fds[f]);
		fds[f] = fds[left - 1];
	}
	return task_reap(pid, LIMIT_MS) == 0;
}

static void leases(struct trial *t, int64_t steps)
{
	bool leased[LEASES] = {false}, ok = true, opened;
	int fds[LEASES];
	int64_t i;

	signal(SIGIO, SIG_IGN);
	close(open(LEASE_FILE, O_RDWR | O_CREAT, 0600));
	for (int f = 0; f < LEASES; f++)
		fds[f] = open(LEASE_FILE, O_RDONLY);
	for (i = 0; i < steps && ok; i++)
		ok = lease_step(fds, leased);
	wl_check(t, "leases", ok, "step %lld", (long long)i);
	opened = break_while_closing(fds);
	wl_check(t, "lease_broken", opened, "%s", "");
}

/* -- processes that are killed -- */

static void storm_process(uint64_t seed)
{
	struct lock_owner file, *o;
	struct request r;
	int fd;

	prng.state = seed;
	for (fd = 3; fd < 1024; fd++)
		close(fd);
	start_owner(&file, false);
	o = &file;
	for (;;) {
		r = random_request();
		owner_do(o, &r);
		fd = open(LOCK_FILE, O_RDWR);
		fcntl(fd, F_SETLK,
		      &(struct flock){.l_type = r.type, .l_start = r.first, .l_len = r.bytes});
		flock(fd, LOCK_SH | LOCK_NB);
		if (below(2))
			close(open(LOCK_FILE, O_RDWR));
		close(fd);
	}
}

static bool storm(int64_t ms)
{
	pid_t pids[STORM];
	bool gone = true;

	for (int i = 0; i < STORM; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			storm_process(prng_next(&prng));
		prng_next(&prng);
	}
	sleep_ms(ms);
	for (int i = 0; i < STORM; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < STORM; i++)
		gone = task_reap(pids[i], LIMIT_MS) >= 0 && gone;
	return gone;
}

/* The children of killed processes hold files until they are gone as well. */
static bool none_left(char *text, size_t size)
{
	int64_t end = now_ns() + LIMIT_MS * 1000000LL;

	while (wrong_byte() >= 0 || flock(observer, LOCK_EX | LOCK_NB)) {
		if (now_ns() > end)
			return false;
		kill_and_reap_all(0);
		sleep_ms(10);
	}
	flock(observer, LOCK_UN);
	return read_file("/proc/locks", text, size) == 0;
}

static int run(struct trial *t)
{
	int64_t steps = wl_param_int(t, "steps"), start = now_ns();
	char text[256] = "";
	struct kmsg m;
	bool gone;
	int got;

	prng.state = (uint64_t)wl_param_int(t, "seed");
	if (byte_locks(t, steps)) {
		flocks(t, steps);
		leases(t, steps);
		gone = storm(wl_param_int(t, "storm_ms"));
		wl_check(t, "all_gone", gone, "%s", "");
	}
	wl_check(t, "none_left", none_left(text, sizeof(text)), "%s", text);
	got = kmsg_problem(log_fd, &m);
	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
	wl_sample(t, "checked_ns", now_ns() - start);
	return 0;
}

static int setup(struct trial *t)
{
	observer = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	log_fd = kmsg_open();
	if (observer < 0 || log_fd < 0)
		return wl_fail(t, "%s: %m", LOCK_FILE);
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	close(observer);
	close(log_fd);
	signal(SIGIO, SIG_DFL);
	unlink(LOCK_FILE);
	unlink(LEASE_FILE);
}

static const char *const params[] = {"steps", "storm_ms", "seed", NULL};
static const struct workload lock_stress = {
	.name = "lock_stress",
	.summary = "locks of files lost and released in every way, compared with a model",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(lock_stress);
