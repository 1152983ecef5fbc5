// SPDX-License-Identifier: GPL-2.0
#include "hunt/residents.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>

#define FOLDER "/tmp/residents"
/* The name of all processes of residents, which their children inherit. */
#define NAME "resident"
#define DECLARED "declared"
#define NONE "-"
#define TEXT_MAX 512

static struct owner owners[RESIDENTS_MOST];
static int nr_owners;
static bool timers;
/* What is there. */
static char made[TEXT_MAX];

int residents_parse(const char *text, struct resident residents[RESIDENTS_MOST])
{
	char copy[TEXT_MAX], *word, *end, *save = NULL;
	int nr = 0;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return -1;
	if (!strcmp(text, NONE))
		return 0;
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *number = strchr(word, '=');
		struct resident *r = &residents[nr];

		if (!number || nr == RESIDENTS_MOST)
			return -1;
		*number++ = '\0';
		r->kind = kind_named(word);
		r->number = strtoll(number, &end, 10);
		if (*end || end == number || r->number < 0 || (!r->kind && strcmp(word, DECLARED)))
			return -1;
		nr++;
	}
	return nr;
}

int64_t residents_declared(const char *text)
{
	struct resident residents[RESIDENTS_MOST];
	int nr = residents_parse(text, residents), i;

	for (i = 0; i < nr; i++)
		if (!residents[i].kind)
			return residents[i].number;
	return 0;
}

bool residents_are_there(void)
{
	return nr_owners > 0;
}

bool residents_have_timers(void)
{
	return timers;
}

static bool is_resident(const char *pid)
{
	char path[64], name[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	f = fopen(path, "re");
	if (f) {
		if (!fgets(name, sizeof(name), f))
			name[0] = '\0';
		fclose(f);
	}
	return !strcmp(name, NAME "\n");
}

/* A kernel thread has no memory. */
static bool is_kernel_thread(const char *pid)
{
	char path[64];
	long pages = 1;
	int nr = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/statm", pid);
	f = fopen(path, "re");
	if (f) {
		nr = fscanf(f, "%ld", &pages);
		fclose(f);
	}
	return nr == 1 && !pages;
}

/* Whether this is a process that may be killed; a zombie has no memory either, and is reaped. */
static bool kill_other(const char *pid)
{
	int number = atoi(pid);

	if (number <= 1 || is_resident(pid))
		return false;
	kill(number, SIGKILL);
	return !is_kernel_thread(pid);
}

void residents_kill_others(void)
{
	struct dirent *entry;
	bool some;
	DIR *dir;

	do {
		some = false;
		dir = opendir("/proc");
		while (dir && (entry = readdir(dir)))
			some |= kill_other(entry->d_name);
		if (dir)
			closedir(dir);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			some = true;
		sched_yield();
	} while (some);
}

static void end_all(void)
{
	while (nr_owners)
		owner_end(&owners[--nr_owners]);
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	umount2(FOLDER, MNT_DETACH);
	made[0] = '\0';
	timers = false;
}

static int make_one(struct trial *t, const struct resident *r, bool user)
{
	struct owner *o = &owners[nr_owners];
	char folder[64];
	struct owner_spec spec = {
		.kind = r->kind,
		.way = WAY_EXIT, /* which needs no order in which they are released */
		.objects = r->number,
		.user = user,
		.cpu = -1,
		.name = NAME,
		.folder = folder,
	};

	snprintf(folder, sizeof(folder), FOLDER "/%s", r->kind->name);
	if (mkdir(folder, 0777) || chmod(folder, 0777))
		return wl_fail(t, "%s: %m", folder);
	nr_owners++;
	timers |= r->kind->timers;
	if (owner_start(o, &spec) && owner_make(o))
		return 0;
	return wl_fail(t, "the residents %s=%lld cannot be made: %.100s: %s; their limit: %s",
		       r->kind->name, (long long)r->number,
		       o->report->call[0] ? o->report->call : "their process was killed",
		       strerror(o->report->error),
		       r->kind->limit ? r->kind->limit : "none is known");
}

int residents_make(struct trial *t, const char *text, bool user)
{
	struct resident residents[RESIDENTS_MOST];
	int nr = residents_parse(text, residents), i, status = 0;

	if (nr < 0)
		return wl_fail(t, "stay=%.100s: not KIND=NUMBER,...", text);
	if (!strcmp(text, made))
		return 0;
	if (nr_owners)
		end_all();
	/* Only what the released kind itself makes. */
	if (!nr || (nr == 1 && !residents[0].kind))
		return 0;
	if ((mkdir(FOLDER, 0777) && errno != EEXIST) ||
	    mount("residents", FOLDER, "tmpfs", 0, "mode=777,nr_inodes=0"))
		return wl_fail(t, "tmpfs on " FOLDER ": %m");
	for (i = 0; i < nr && !status; i++) {
		if (residents[i].kind)
			status = make_one(t, &residents[i], user);
		wl_alive(t, "residents: %d of %d", i + 1, nr);
	}
	if (status)
		end_all();
	else
		snprintf(made, sizeof(made), "%s", text);
	return status;
}
