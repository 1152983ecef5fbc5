// SPDX-License-Identifier: GPL-2.0
#include "accounting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"

#define MOUNT_SIZE "size=512m"

static int mount_node(const char *at, int node)
{
	char path[128], options[64];

	snprintf(path, sizeof(path), "%s/%d", at, node);
	snprintf(options, sizeof(options), MOUNT_SIZE ",mpol=bind:%d", node);
	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	return mount("tmpfs", path, "tmpfs", 0, options) ? -errno : 0;
}

int accounting_mount(const char *at)
{
	char node[64];
	int nodes = 0;

	mkdir(at, 0755);
	for (;; nodes++) {
		int error;

		snprintf(node, sizeof(node), "/sys/devices/system/node/node%d", nodes);
		if (nodes == ACCOUNTING_NODES || access(node, F_OK))
			break;
		error = mount_node(at, nodes);
		if (error)
			return error;
	}
	return nodes ? nodes : -ENODEV;
}

void accounting_unmount(const char *at, int nodes)
{
	char path[128];

	for (int i = 0; i < nodes; i++) {
		snprintf(path, sizeof(path), "%s/%d", at, i);
		umount2(path, MNT_DETACH);
	}
}

int64_t accounting_node_bytes(const char *at, int node)
{
	struct statfs s;
	char path[128];

	snprintf(path, sizeof(path), "%s/%d", at, node);
	if (statfs(path, &s))
		return -errno;
	return (int64_t)(s.f_blocks - s.f_bfree) * s.f_bsize;
}

/* Parses a line such as "file N0=4096 N1=0". */
static void read_nodes(const char *line, struct memcg_counters *h)
{
	h->nr_nodes = 0;
	while (h->nr_nodes < ACCOUNTING_NODES) {
		const char *equals = strchr(line, '=');
		const char *end = strchr(line, '\n');

		if (!equals || (end && equals > end))
			return;
		h->node_file[h->nr_nodes++] = strtoll(equals + 1, NULL, 10);
		line = equals + 1;
	}
}

int memcg_counters_read(const char *cgroup, int nodes, struct memcg_counters *h)
{
	char path[256], text[ACCOUNTING_TEXT];
	const char *line;
	int len;

	snprintf(path, sizeof(path), "%s/cpu.stat", cgroup);
	len = read_file(path, text, sizeof(text));
	if (len < 0)
		return len;
	snprintf(path, sizeof(path), "%s/memory.stat", cgroup);
	len = read_file(path, h->text, sizeof(h->text));
	if (len < 0)
		return len;
	h->file = cgroup_value_in(h->text, "file");
	h->shmem = cgroup_value_in(h->text, "shmem");
	h->anon = cgroup_value_in(h->text, "anon");
	h->mapped = cgroup_value_in(h->text, "file_mapped");
	h->slab = cgroup_value_in(h->text, "slab");
	h->percpu = cgroup_value_in(h->text, "percpu");
	h->faults = cgroup_value_in(h->text, "pgfault");
	snprintf(path, sizeof(path), "%s/memory.numa_stat", cgroup);
	len = read_file(path, text, sizeof(text));
	if (len < 0)
		return len;
	line = strstr(text, "\nfile ");
	if (!line)
		return -ENOENT;
	read_nodes(line + 1, h);
	return h->nr_nodes == nodes ? 0 : -EINVAL;
}

/* Charges and frees a file on each CPU. */
static int open_on_all_cpus(const char *cgroup)
{
	int error = cgroup_enter(cgroup), fds[2];

	for (int cpu = 0; !error && !stay_on_cpu(cpu); cpu++) {
		if (pipe(fds))
			return -errno;
		close(fds[0]);
		close(fds[1]);
	}
	return error;
}

int accounting_drain_stocks(const char *cgroup)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(open_on_all_cpus(cgroup) ? EXIT_FAILURE : EXIT_SUCCESS);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return status ? -EIO : 0;
}
