// SPDX-License-Identifier: GPL-2.0
#include "hunt/owners.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>

#include "hunt/residents.h"

#define FOLDER "/tmp/hunt"

/* Real-time priorities, of this process if it is not that of the owners. */
enum { BELOW_OWNERS = 1, OF_OWNERS, ABOVE_OWNERS };

static struct owner owners[OWNERS_MOST];
static int nr_owners;

static int owner_error(struct trial *t, const struct owner *o)
{
	if (o->report->call[0])
		return wl_fail(t, "%.100s: %s", o->report->call, strerror(o->report->error));
	return wl_fail(t, "the owner of the objects was killed");
}

int owners_start(struct trial *t, const struct owner_spec *spec, int count)
{
	char folder[64];
	int i;

	if ((mkdir(FOLDER, 0777) && errno != EEXIST) ||
	    mount("hunt", FOLDER, "tmpfs", 0, "mode=777,nr_inodes=0"))
		return wl_fail(t, "tmpfs on " FOLDER ": %m");
	for (i = 0; i < count; i++) {
		struct owner_spec one = *spec;

		snprintf(folder, sizeof(folder), FOLDER "/%d", i);
		if (mkdir(folder, 0777) || chmod(folder, 0777))
			return wl_fail(t, "%s: %m", folder);
		one.folder = folder;
		one.cpu = count > 1 ? i % (int)sysconf(_SC_NPROCESSORS_ONLN) : -1;
		nr_owners++;
		if (!owner_start(&owners[i], &one))
			return owner_error(t, &owners[i]);
	}
	return 0;
}

int owners_make(struct trial *t)
{
	int64_t made = 0;
	int i;

	for (i = 0; i < nr_owners; i++) {
		if (!owner_make(&owners[i]))
			return owner_error(t, &owners[i]);
		made += owners[i].spec.objects;
		wl_alive(t, "%lld made", (long long)made);
	}
	return 0;
}

static int set_priority(struct trial *t, pid_t pid, int priority)
{
	struct sched_param param = {.sched_priority = priority};

	if (sched_setscheduler(pid, priority ? SCHED_FIFO | SCHED_RESET_ON_FORK : SCHED_OTHER,
			       &param))
		return wl_fail(t, "real-time priority %d: %m", priority);
	return 0;
}

int owners_prioritize(struct trial *t)
{
	int i, status = set_priority(t, 0, BELOW_OWNERS);

	for (i = 0; i < nr_owners && !status; i++)
		status = set_priority(t, owners[i].pid, OF_OWNERS);
	return status;
}

int owners_leave_priority(struct trial *t)
{
	return set_priority(t, 0, 0);
}

int owners_release(struct trial *t)
{
	int i;

	/* An owner that starts on this CPU must not keep this process from starting the others. */
	if (nr_owners > 1 && set_priority(t, 0, ABOVE_OWNERS))
		return -1;
	for (i = 0; i < nr_owners; i++)
		owner_release(&owners[i]);
	if (nr_owners > 1 && set_priority(t, 0, BELOW_OWNERS))
		return -1;
	for (i = 0; i < nr_owners; i++)
		if (!owner_released(&owners[i]))
			return owner_error(t, &owners[i]);
	return 0;
}

void owners_times(int64_t *start_ns, int64_t *end_ns)
{
	int i;

	if (owners[0].spec.way == WAY_EXIT)
		return;
	*start_ns = INT64_MAX;
	*end_ns = 0;
	for (i = 0; i < nr_owners; i++) {
		const struct owner_report *o = owners[i].report;

		*start_ns = o->start_ns < *start_ns ? o->start_ns : *start_ns;
		*end_ns = o->end_ns > *end_ns ? o->end_ns : *end_ns;
	}
}

struct owners_sums owners_sums(void)
{
	struct owners_sums sums = {0};
	int i;

	for (i = 0; i < nr_owners; i++) {
		const struct owner_report *o = owners[i].report;

		sums.left += o->left;
		sums.waits += o->waits;
		if (o->made_ns > sums.longest_made_ns)
			sums.longest_made_ns = o->made_ns;
	}
	return sums;
}

void owners_clean(void)
{
	int i;

	for (i = 0; i < nr_owners; i++)
		owner_end(&owners[i]);
	nr_owners = 0;
	if (residents_are_there()) {
		residents_kill_others();
	} else {
		kill(-1, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
	umount2(FOLDER, MNT_DETACH);
}
