// SPDX-License-Identifier: GPL-2.0
/*
 * The main() of a program that shows one kind by itself: it makes N, 2N and 4N objects, releases
 * them, and prints how long the release took. With each doubling a linear cost doubles. With
 * residents, which stay until the objects are released, these double, and the objects do not.
 * "hold" in place of a way makes the objects and keeps them, for another such program.
 */
#include "hunt/owner.h"

#include <ftw.h>
#include <sys/prctl.h>

static int delete_entry(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)status;
	(void)type;
	(void)at;
	remove(path);
	return 0;
}

/* Waits until everything that descends from this process is gone. */
static void kill_descendants(void)
{
	char text[4096], *at;
	long pid;
	int fd, len;

	do {
		fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
		len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		text[len > 0 ? len : 0] = '\0';
		close(fd);
		for (at = text; (pid = strtol(at, &at, 10)) > 0;)
			kill(pid, SIGKILL);
	} while (waitpid(-1, NULL, 0) > 0);
}

static int show(const struct owner_spec *spec)
{
	struct owner owner = {0};
	int64_t start, took;

	if (!owner_start(&owner, spec) || !owner_make(&owner)) {
		fprintf(stderr, "%s: %s\n", owner.report->call, strerror(owner.report->error));
		return 1;
	}
	start = clock_ns();
	owner_release(&owner);
	if (!owner_released(&owner)) {
		fprintf(stderr, "%s: %s\n", owner.report->call, strerror(owner.report->error));
		return 1;
	}
	took = clock_ns() - start;
	if (spec->way != WAY_EXIT)
		took = owner.report->end_ns - owner.report->start_ns;
	printf("%8lld objects", (long long)spec->objects);
	if (spec->kind->stay)
		printf(", %8lld residents", (long long)spec->residents);
	printf(": made in %9.3f ms, released in %9.3f ms\n", owner.report->made_ns / 1e6,
	       took / 1e6);
	fflush(stdout);
	owner_end(&owner);
	return 0;
}

/* Makes the objects, which then stay while another program releases its own. */
static int hold(struct owner_spec *spec)
{
	struct owner owner;

	spec->way = WAY_EXIT;
	if (!owner_start(&owner, spec) || !owner_make(&owner)) {
		fprintf(stderr, "%s: %s\n", owner.report->call, strerror(owner.report->error));
		return 1;
	}
	printf("%lld objects stay until this program is killed\n", (long long)spec->objects);
	fflush(stdout);
	wait_to_be_killed();
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/reproducer-XXXXXX";
	struct owner_spec spec = {.kind = kind_at(0), .cpu = -1, .folder = folder, .seed = 1};
	int64_t objects = argc > 1 ? atoll(argv[1]) : 1000;
	int64_t residents = argc > 3 ? atoll(argv[3]) : 0;
	int i, way = 0, status = 0;

	spec.user = geteuid() != 0;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (argc == 3 && objects > 0 && !strcmp(argv[2], "hold") && mkdtemp(folder)) {
		spec.objects = objects;
		return hold(&spec);
	}
	while (argc > 2 && way_names[way] && strcmp(argv[2], way_names[way]))
		way++;
	while (argc < 3 && !kind_has_way(spec.kind, way))
		way++;
	if (objects < 1 || way >= NR_WAYS || !kind_has_way(spec.kind, way) ||
	    (argc > 3 && (residents < 1 || !spec.kind->stay))) {
		fprintf(stderr, "usage: %s [OBJECTS [WAY%s]], ways: hold", argv[0],
			spec.kind->stay ? " [RESIDENTS]" : "");
		for (way = 0; way < NR_WAYS; way++)
			if (kind_has_way(spec.kind, way))
				fprintf(stderr, " %s", way_names[way]);
		fputc('\n', stderr);
		return 2;
	}
	spec.way = way;
	for (i = 0; i < 3 && !status; i++) {
		strcpy(folder + strlen(folder) - 6, "XXXXXX");
		if (!mkdtemp(folder))
			return perror(folder), 1;
		spec.objects = residents ? objects : objects << i;
		spec.residents = residents << i;
		status = show(&spec);
		/* After a failure too. */
		kill_descendants();
		nftw(folder, delete_entry, 16, FTW_DEPTH | FTW_MOUNT | FTW_PHYS);
	}
	return status;
}
