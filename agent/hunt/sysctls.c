// SPDX-License-Identifier: GPL-2.0
#include "hunt/sysctls.h"

#include "hunt/kind.h"

void raise_sysctls(void)
{
	static const char *const files[] = {
		"fs/inotify/max_user_watches",
		"fs/inotify/max_user_instances",
		"fs/fanotify/max_user_groups",
		"fs/fanotify/max_user_marks",
		"fs/aio-max-nr",
		"fs/mount-max",
		"fs/mqueue/queues_max",
		"fs/nr_open",
		"fs/file-max",
		"fs/pipe-user-pages-soft",
		"fs/epoll/max_user_watches",
		"kernel/keys/root_maxkeys",
		"kernel/keys/root_maxbytes",
		"kernel/keys/maxkeys",
		"kernel/keys/maxbytes",
		"kernel/msgmni",
		"kernel/pid_max",
		"kernel/pty/max",
		"kernel/shmmni",
		"kernel/threads-max",
		"net/core/somaxconn",
		"net/core/optmem_max",
		"net/ipv4/igmp_max_memberships",
		"net/unix/max_dgram_qlen",
		"vm/max_map_count",
	};
	static const char *const namespaces[] = {"cgroup", "ipc",  "mnt",  "net",
						 "pid",	   "time", "user", "uts"};
	char path[96];
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "/proc/sys/%s", files[i]);
		if (put_file(path, "1000000"))
			put_file(path, "32000");
	}
	for (i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
		snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", namespaces[i]);
		put_file(path, "1000000");
	}
	put_file("/proc/sys/kernel/sem", "32000 1024000000 500 32000");
}
