// SPDX-License-Identifier: GPL-2.0
#include "latency_probe.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/applet.h"
#include "lib/latency.h"

#define PROBE_NS 1000000
/* Often enough for several of them in a teardown, seldom enough not to be load themselves. */
#define NEWCOMER_NS 5000000
#define REALTIME_NS 2000000
#define MAX_PROBES 64
/* 17 minutes of a probe that is never late; pages are allocated when they are written. */
#define MAX_STAMPS (1 << 20)

/* The time stamps of one process, which writes them alone; they are read when it has exited. */
struct track {
	size_t nr;
	int64_t stamps[MAX_STAMPS];
};

struct shared {
	_Atomic int64_t from; /* 0: nothing is recorded yet */
	_Atomic bool stop;
	int64_t runnable, free_kb, free_at;
	/* The stamps of newcomer and lone_kill are pairs. */
	struct track newcomer, lone_kill, realtime, probes[];
};

typedef void body(int cpu);

static struct shared *shared;
static pid_t pids[MAX_PROBES + 3];
static int nr_pids, nr_probes;
static bool sessions;

static size_t shared_size(void)
{
	return sizeof(struct shared) + nr_probes * sizeof(struct track);
}

/*
 * Until recording begins only the latest stamp is kept: the gap that contains the
 * beginning starts there.
 */
static void stamp(struct track *track)
{
	if (!shared->from)
		track->nr = 0;
	if (track->nr < MAX_STAMPS)
		track->stamps[track->nr++] = now_ns();
}

static void bind_to(int cpu)
{
	if (stay_on_cpu(cpu))
		_exit(EXIT_FAILURE);
}

static void probe(int cpu)
{
	bind_to(cpu);
	while (!shared->stop) {
		stamp(&shared->probes[cpu]);
		sleep_ns(PROBE_NS);
	}
	stamp(&shared->probes[cpu]);
}

/* The fourth word of /proc/loadavg is "runnable/all". This process itself is runnable, too. */
static int64_t count_runnable(int fd)
{
	char text[128] = "";
	const char *word;
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);

	word = len > 0 ? strchr(text, '/') : NULL;
	while (word && word > text && word[-1] != ' ')
		word--;
	return word ? strtoll(word, NULL, 10) - 1 : 0;
}

static void watch_memory(void)
{
	struct sysinfo info;

	if (!shared->from || !shared->free_kb || shared->free_at || sysinfo(&info))
		return;
	if ((int64_t)(info.freeram * info.mem_unit / 1024) >= shared->free_kb)
		shared->free_at = now_ns();
}

static void realtime_probe(int cpu)
{
	struct sched_param realtime = {.sched_priority = 1};
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);

	bind_to(cpu);
	if (fd < 0 || sched_setscheduler(0, SCHED_FIFO, &realtime))
		_exit(EXIT_FAILURE);
	while (!shared->stop) {
		int64_t runnable = count_runnable(fd);

		if (shared->from && runnable > shared->runnable)
			shared->runnable = runnable;
		watch_memory();
		stamp(&shared->realtime);
		sleep_ns(REALTIME_NS);
	}
	stamp(&shared->realtime);
}

static int exit_at_once(int argc, char **argv)
{
	(void)argc, (void)argv;
	return 0;
}
APPLET(newcomer, exit_at_once);

static void stamp_pair(struct track *track, int64_t start)
{
	if (!shared->from || track->nr + 2 > MAX_STAMPS)
		return;
	track->stamps[track->nr++] = start;
	track->stamps[track->nr++] = now_ns();
}

static void start_newcomers(int cpu)
{
	struct track *track = &shared->newcomer;

	(void)cpu;
	do {
		int64_t start = now_ns();
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			execl("/proc/self/exe", "newcomer", NULL);
			_exit(EXIT_FAILURE);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			_exit(EXIT_FAILURE);
		stamp_pair(track, start);
		sleep_ns(NEWCOMER_NS);
	} while (!shared->stop || !track->nr);
}

static void kill_one_by_one(int cpu)
{
	struct track *track = &shared->lone_kill;

	(void)cpu;
	do {
		int64_t start;
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			setpgid(0, 0);
			for (;;)
				pause();
		}
		sleep_ns(NEWCOMER_NS);
		start = now_ns();
		if (pid < 0 || kill(pid, SIGKILL) || waitpid(pid, &status, 0) != pid)
			_exit(EXIT_FAILURE);
		stamp_pair(track, start);
	} while (!shared->stop || !track->nr);
}

static int start(struct trial *t, body *body, int cpu)
{
	pid_t pid = fork();

	if (pid < 0)
		return wl_fail(t, "cannot fork a latency probe: %m");
	if (pid == 0) {
		prctl(PR_SET_TIMERSLACK, 1);
		if (sessions)
			setsid();
		body(cpu);
		_exit(EXIT_SUCCESS);
	}
	pids[nr_pids++] = pid;
	return 0;
}

int latency_probes_start(struct trial *t, const struct probe_spec *spec)
{
	int error = 0;

	nr_pids = 0;
	sessions = spec->sessions;
	nr_probes = sysconf(_SC_NPROCESSORS_ONLN);
	if (nr_probes < 1 || nr_probes > MAX_PROBES)
		return wl_fail(t,
			       "%d CPUs are online, and at most %d can be probed; give the guest "
			       "fewer CPUs",
			       nr_probes, MAX_PROBES);
	shared = mmap(NULL, shared_size(), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared == MAP_FAILED) {
		shared = NULL;
		return wl_fail(t, "cannot mmap memory for the latency probes: %m");
	}
	if (!spec->any)
		return 0;
	shared->free_kb = spec->free_kb;
	for (int cpu = 0; cpu < nr_probes && !error; cpu++)
		error = start(t, probe, cpu);
	if (!error)
		error = start(t, start_newcomers, 0);
	if (!error && spec->lone_kills)
		error = start(t, kill_one_by_one, 0);
	return error ? error : start(t, realtime_probe, nr_probes - 1);
}

int64_t latency_probes_from(void)
{
	int64_t now = now_ns();

	shared->from = now;
	return now;
}

void latency_probes_await_memory(int64_t limit_ms)
{
	int64_t end = now_ns() + limit_ms * 1000000;

	while (shared->free_kb && !shared->free_at && now_ns() < end)
		sleep_ms(2);
}

/* How long what the pairs of stamps include took, for those that began before the end. */
static void summarize_pairs(const struct track *track, int64_t until_ns, int64_t *median,
			    int64_t *worst)
{
	int64_t *took = malloc((track->nr / 2 + 1) * sizeof(*took));
	size_t n = 0;

	for (size_t i = 0; took && i < track->nr; i += 2)
		if (!n || track->stamps[i] < until_ns)
			took[n++] = track->stamps[i + 1] - track->stamps[i];
	*worst = latency_longest(took, n);
	*median = latency_median(took, n);
	free(took);
}

static int summarize(struct trial *t, int64_t until_ns, struct probe_results *w)
{
	size_t room = shared->realtime.nr, n = 0;
	int64_t *gaps;

	for (int cpu = 0; cpu < nr_probes; cpu++)
		room += shared->probes[cpu].nr;
	gaps = malloc(room * sizeof(*gaps));
	if (!gaps)
		return wl_fail(t, "not enough memory for %zu gaps", room);
	n = latency_gaps(shared->realtime.stamps, shared->realtime.nr, shared->from, until_ns,
			 gaps);
	w->realtime_ns = latency_longest(gaps, n);
	n = 0;
	for (int cpu = 0; cpu < nr_probes; cpu++)
		n += latency_gaps(shared->probes[cpu].stamps, shared->probes[cpu].nr, shared->from,
				  until_ns, gaps + n);
	w->longest_ns = latency_longest(gaps, n);
	w->p50_ns = latency_percentile(gaps, n, PROBE_NS, 500);
	w->p99_ns = latency_percentile(gaps, n, PROBE_NS, 990);
	w->runnable = shared->runnable;
	free(gaps);
	w->free_ns = shared->free_at;
	summarize_pairs(&shared->newcomer, until_ns, &w->newcomer_ns, &w->newcomer_worst_ns);
	summarize_pairs(&shared->lone_kill, until_ns, &w->lone_kill_ns, &w->lone_kill_worst_ns);
	return 0;
}

int latency_probes_stop(struct trial *t, int64_t until_ns, struct probe_results *w)
{
	int error = 0;

	shared->stop = true;
	for (int i = 0; i < nr_pids; i++) {
		int status;

		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			error = wl_fail(t, "latency probe %d of %d ended with wait status %#x", i,
					nr_pids, (unsigned)status);
	}
	nr_pids = 0;
	if (!error)
		error = summarize(t, until_ns, w);
	latency_probes_drop();
	return error;
}

void latency_probes_drop(void)
{
	for (int i = 0; i < nr_pids; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	nr_pids = 0;
	if (shared)
		munmap(shared, shared_size());
	shared = NULL;
}
