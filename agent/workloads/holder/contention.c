// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "contention.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"

#define FILES "/tmp/contention"
#define LISTED_FILES 2000
#define LISTING_BYTES (1 << 20)
#define OWNED_BYTES (32 << 20)
#define NEW_BYTES (64 << 10)
#define WRITE_BYTES (4 << 20)
#define SMALL_BYTES 4096
#define MOVE_CGROUPS CGROUP_ROOT "park"
#define REMOVE_MS 10000

/* Of the process that uses them; each process has its own copy. */
static char *buffer;
static int file;
static int other_pid;

static int mount_files(void)
{
	if (mkdir(FILES, 0755) && errno != EEXIST)
		return -errno;
	return mount("tmpfs", FILES, "tmpfs", 0, "size=64m") ? -errno : 0;
}

static void unmount_files(void)
{
	umount2(FILES, MNT_DETACH);
	rmdir(FILES);
}

static bool have_buffer(size_t size)
{
	buffer = malloc(size);
	if (buffer)
		memset(buffer, 'x', size);
	return buffer != NULL;
}

/*
 * -- listing: getdents64() holds the directory's i_rwsem for reading; open(O_CREAT) and
 * unlink() need it for writing --
 */

static int make_listed(void)
{
	char path[64];
	int error = mount_files(), fd;

	for (int i = 0; i < LISTED_FILES && !error; i++) {
		snprintf(path, sizeof(path), FILES "/a-file-that-is-listed-%d", i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return -errno;
		close(fd);
	}
	return error;
}

static bool begin_listing(int other)
{
	(void)other;
	file = open(FILES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return file >= 0 && have_buffer(LISTING_BYTES);
}

static bool list(void)
{
	long n;

	if (lseek(file, 0, SEEK_SET))
		return false;
	do
		n = syscall(SYS_getdents64, file, buffer, LISTING_BYTES);
	while (n > 0);
	return n == 0;
}

static bool create_and_remove(int64_t thread, int64_t number)
{
	char path[64];
	int fd;

	(void)number;
	snprintf(path, sizeof(path), FILES "/%lld", (long long)thread);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	close(fd);
	return !unlink(path);
}

/*
 * -- smaps: reading smaps_rollup holds the owner's mmap_lock for reading; mmap() and
 * munmap() need it for writing --
 */

static int nothing_to_make(void)
{
	return 0;
}

static bool own_memory(void)
{
	char *memory = mmap(NULL, OWNED_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return memory != MAP_FAILED;
}

static bool begin_smaps(int other)
{
	other_pid = other;
	return have_buffer(SMALL_BYTES);
}

static bool read_smaps(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", other_pid);
	return read_file(path, buffer, SMALL_BYTES) > 0;
}

static bool map_and_unmap(int64_t thread, int64_t number)
{
	char *memory =
		mmap(NULL, NEW_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)thread, (void)number;
	return memory != MAP_FAILED && !munmap(memory, NEW_BYTES);
}

/* -- write: long and short writes to one file of tmpfs, each with its i_rwsem held -- */

static int make_written(void)
{
	int error = mount_files();

	if (error)
		return error;
	file = open(FILES "/shared", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return file < 0 ? -errno : 0;
}

static bool begin_writing(int other)
{
	(void)other;
	return have_buffer(WRITE_BYTES);
}

static bool write_long(void)
{
	return pwrite(file, buffer, WRITE_BYTES, 0) == WRITE_BYTES;
}

static bool prepare_short(void)
{
	return have_buffer(SMALL_BYTES);
}

static bool write_short(int64_t thread, int64_t number)
{
	(void)thread, (void)number;
	return pwrite(file, buffer, SMALL_BYTES, 0) == SMALL_BYTES;
}

static void clear_written(void)
{
	close(file);
	unmount_files();
}

/*
 * -- fork: fork() holds cgroup_threadgroup_rwsem for reading; a write to cgroup.procs
 * needs it for writing --
 */

static int make_cgroups(void)
{
	int error = cgroup_make(MOVE_CGROUPS "0");

	return error ? error : cgroup_make(MOVE_CGROUPS "1");
}

/* A child that is moved from one cgroup to the other. */
static bool start_moved_child(void)
{
	other_pid = fork();
	if (other_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return other_pid > 0;
}

static bool move(int64_t thread, int64_t number)
{
	(void)thread;
	return !write_file(number % 2 ? MOVE_CGROUPS "1/cgroup.procs"
				      : MOVE_CGROUPS "0/cgroup.procs",
			   "%d", other_pid);
}

static bool begin_forking(int other)
{
	(void)other;
	return true;
}

static bool fork_once(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(EXIT_SUCCESS);
	return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

static void remove_cgroups(void)
{
	cgroup_remove(MOVE_CGROUPS "0", REMOVE_MS);
	cgroup_remove(MOVE_CGROUPS "1", REMOVE_MS);
}

static void nothing_to_clear(void)
{
}

const struct contention contentions[] = {
	{"listing",
	 3000,
	 make_listed,
	 {NULL, create_and_remove},
	 begin_listing,
	 list,
	 unmount_files},
	{"smaps",
	 3000,
	 nothing_to_make,
	 {own_memory, map_and_unmap},
	 begin_smaps,
	 read_smaps,
	 nothing_to_clear},
	{"write",
	 3000,
	 make_written,
	 {prepare_short, write_short},
	 begin_writing,
	 write_long,
	 clear_written},
	/* A task that is moved to another cgroup waits for a grace period of RCU first. */
	{"fork",
	 50000,
	 make_cgroups,
	 {start_moved_child, move},
	 begin_forking,
	 fork_once,
	 remove_cgroups},
	{0},
};
