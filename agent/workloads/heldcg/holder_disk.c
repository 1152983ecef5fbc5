// SPDX-License-Identifier: GPL-2.0
/*
 * Files on a disk. Writeback is divided by cgroup: an inode is attached to a struct bdi_writeback
 * of the cgroup that made it dirty first, which refers to the cgroup.
 *
 * The kernel writes nothing by itself while the objects exist, and the agent has read and
 * changed all metadata before: no page of metadata is charged to a cgroup of the objects.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk_image.h"
#include "holders.h"
#include "lib/cgroup.h"

#define DISK "/dev/ram0"
#define PLACE "/tmp/held-disk"
/* One record for each struct bdi_writeback of the disk. */
#define WRITEBACKS "/sys/kernel/debug/bdi/1:0/wb_stats"
#define OTHER HELD_PARENT "/other"
/* An inode of ext4 takes 1000 bytes or more. */
#define INODE 900
#define SLAB_SLACK 65536
/* After a removal a worker gives the inodes that are not dirty to the parent. */
#define OFFLINE_MS 1000
#define REMOVE_MS 10000
#define GONE_MS 10000

/* -- the disk -- */

static struct {
	const char *path, *value;
	char before[32];
} writeback_times[] = {
	{"/proc/sys/vm/dirty_writeback_centisecs", "0", ""},
	{"/proc/sys/vm/dirty_expire_centisecs", "10000000", ""},
};

static int stop_writeback(void)
{
	int error = 0;

	for (size_t i = 0; i < ARRAY_SIZE(writeback_times) && error >= 0; i++) {
		error = read_file(writeback_times[i].path, writeback_times[i].before,
				  sizeof(writeback_times[i].before));
		if (error > 0)
			error = write_file(writeback_times[i].path, "%s", writeback_times[i].value);
	}
	return error;
}

static int open_disk(int flags)
{
	int fd = open(DISK, flags | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int write_image(void *image, int64_t blocks, int64_t inodes)
{
	int error = disk_image(image, blocks, inodes), fd;

	if (error)
		return error;
	fd = open_disk(O_RDWR);
	if (fd < 0)
		return fd;
	error = write_all(fd, image, disk_image_blocks(inodes) * DISK_BLOCK);
	if (!error && fsync(fd))
		error = -errno;
	close(fd);
	return error;
}

/* Reads the metadata into the page cache. */
static int read_metadata(void *image, int64_t inodes)
{
	int fd = open_disk(O_RDONLY), error;

	if (fd < 0)
		return fd;
	error = read_all(fd, image, disk_image_blocks(inodes) * DISK_BLOCK);
	close(fd);
	return error;
}

/*
 * Makes and deletes the files: the folder becomes as large as it will be, its inode is attached to
 * the root cgroup, and what the file system caches to allocate blocks is there.
 */
static int use_disk(int64_t count)
{
	char path[HELD_PATH_SIZE];
	int error = 0;

	for (int64_t i = 0; i < count && !error; i++) {
		held_path(path, PLACE, i);
		int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (fd < 0)
			return -errno;
		error = held_write_page(fd, i);
		close(fd);
	}
	if (error)
		return error;
	sync();
	for (int64_t i = 0; i < count; i++) {
		held_path(path, PLACE, i);
		if (unlink(path))
			return -errno;
	}
	sync();
	return 0;
}

static int prepare_files(struct trial *t, void *image, int64_t count)
{
	int64_t inodes = (count + 64) / 16 * 16;
	int error = write_image(image, disk_image_blocks(inodes) + count + count / 64 + 64, inodes);

	if (error)
		return wl_fail(t, "cannot format " DISK ": %s; the kernel needs BLK_DEV_RAM",
			       strerror(-error));
	if (mkdir(PLACE, 0755) && errno != EEXIST)
		return wl_fail(t, "cannot make " PLACE ": %m");
	if (mount(DISK, PLACE, "ext4", MS_NOATIME, NULL))
		return wl_fail(t, "cannot mount " DISK ": %m; the kernel needs EXT4_FS");
	error = read_metadata(image, inodes);
	if (!error)
		error = use_disk(count);
	if (error)
		return wl_fail(t, "cannot prepare " PLACE ": %s", strerror(-error));
	return 0;
}

static int prepare_disk(struct trial *t, int64_t count)
{
	void *image = malloc(DISK_MAX_BLOCKS * DISK_BLOCK);
	int error = image ? stop_writeback() : -ENOMEM;
	int status;

	if (error < 0) {
		free(image);
		return wl_fail(t, "cannot stop the periodic writeback: %s", strerror(-error));
	}
	status = prepare_files(t, image, count);
	free(image);
	return status;
}

static void tidy_disk(void)
{
	umount(PLACE);
	rmdir(PLACE);
	for (size_t i = 0; i < ARRAY_SIZE(writeback_times); i++) {
		if (writeback_times[i].before[0])
			write_file(writeback_times[i].path, "%s", writeback_times[i].before);
		writeback_times[i].before[0] = '\0';
	}
}

/* -- what the kernel has for writeback -- */

static int64_t inode_of(const char *path)
{
	struct stat info;

	return stat(path, &info) ? -errno : (int64_t)info.st_ino;
}

/*
 * How many cgroups other than the root have a struct bdi_writeback of the disk, or if wanted
 * is not 0, whether the cgroup of this inode has one. -errno.
 */
static int64_t count_writebacks(int64_t wanted)
{
	int64_t root = inode_of(CGROUP_ROOT), found = 0;
	FILE *file = fopen(WRITEBACKS, "re");
	long long inode;
	char line[128];

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "WbCgIno: %lld", &inode) == 1)
			found += wanted ? inode == wanted : inode != root;
	}
	fclose(file);
	return found;
}

/* The inode of the cgroup that the process is in, or -errno. */
static int64_t current_cgroup(void)
{
	char text[256], path[300];
	int len = read_file("/proc/self/cgroup", text, sizeof(text));

	if (len < 0)
		return len;
	text[strcspn(text, "\n")] = '\0';
	if (strncmp(text, "0::/", 4))
		return -EPROTO;
	snprintf(path, sizeof(path), CGROUP_ROOT "%s", text + 4);
	return inode_of(path);
}

/* Each inside has one; outside they share one. */
static int64_t count_dirty(const int64_t *kept, int64_t count, bool outside)
{
	int64_t found = count_writebacks(0);

	(void)kept;
	if (outside)
		return found == (count ? 1 : 0) ? count : found;
	return found;
}

/* -- the objects -- */

static void make_dirty(int64_t number, struct made *made)
{
	int fd = held_make_file(PLACE, number, made);

	made_check(made, "writing a file", held_write_page(fd, number));
	close(fd);
}

/* Writes the file to the disk and drops its page, so that only the inode is left. */
static void make_written(int64_t number, struct made *made)
{
	int fd = held_make_file(PLACE, number, made);
	int64_t cgroup = current_cgroup(), found;

	made_check(made, "writing a file", held_write_page(fd, number));
	if (fsync(fd))
		made_check(made, "writing a file to the disk", -errno);
	made_check(made, "dropping a page", -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	made_check(made, "finding the cgroup", cgroup < 0 ? cgroup : 0);
	found = count_writebacks(cgroup);
	made_check(made, "finding the writeback (DEBUG_FS)", found < 0 ? found : 0);
	made_check(made, "finding the cgroup's writeback", found != 1 ? -ENOENT : 0);
	close(fd);
}

/* How many files there are with all of their data. make_written() has found the writeback. */
static int64_t count_written(const int64_t *kept, int64_t count, bool outside)
{
	char path[HELD_PATH_SIZE];
	struct stat info;
	int64_t found = 0;

	(void)kept;
	(void)outside;
	for (int64_t i = 0; i < count; i++) {
		held_path(path, PLACE, i);
		found += !stat(path, &info) && info.st_blocks > 0;
	}
	return found;
}

/* Writes and drops the pages of dirty files when no cgroup is being taken offline any more. */
static int write_all_files(struct trial *t, int64_t count)
{
	char path[HELD_PATH_SIZE];

	sleep_ms(OFFLINE_MS);
	sync();
	for (int64_t i = 0; i < count; i++) {
		held_path(path, PLACE, i);
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			return wl_fail(t, "cannot open %s: %m", path);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		close(fd);
	}
	return 0;
}

/* The removal of any memory cgroup frees those whose data have been written meanwhile. */
static int remove_another(struct trial *t)
{
	int64_t end = now_ns() + GONE_MS * 1000000LL, dying;
	int error = cgroup_make(OTHER);

	if (!error)
		error = cgroup_remove(OTHER, REMOVE_MS);
	if (error)
		return wl_fail(t, "cannot make and remove " OTHER ": %s", strerror(-error));
	do {
		sleep_ms(10);
		dying = cgroup_value(HELD_PARENT, "cgroup.stat", "nr_dying_descendants");
	} while (dying > 0 && now_ns() < end);
	if (dying)
		return wl_fail(t, "%lld are still dying after another cgroup was removed",
			       (long long)dying);
	return 0;
}

static int delete_file(int64_t number, int64_t kept)
{
	char path[HELD_PATH_SIZE];

	(void)kept;
	held_path(path, PLACE, number);
	return unlink(path) ? -errno : 0;
}

const struct holder holder_dirty = {
	.name = "dirty",
	.controller = "io",
	.file_pages = 1,
	.charge = {"memory.stat", "file_dirty", .pages = 1},
	.prepare = prepare_disk,
	.make = make_dirty,
	.count = count_dirty,
	.release = delete_file,
	.tidy = tidy_disk,
};

const struct holder holder_written = {
	.name = "written",
	.controller = "io",
	.charge = {"memory.stat", "slab", .bytes = INODE, .slack_bytes = SLAB_SLACK},
	.prepare = prepare_disk,
	.make = make_written,
	.count = count_written,
	.release = delete_file,
	.tidy = tidy_disk,
};

const struct holder holder_written_late = {
	.name = "written-late",
	.only_inside = true,
	.controller = "io",
	.charge = {"memory.stat", "slab", .bytes = INODE, .slack_bytes = SLAB_SLACK},
	.prepare = prepare_disk,
	.make = make_dirty,
	.removed = write_all_files,
	.count = count_dirty,
	.before_release = remove_another,
	.release = delete_file,
	.tidy = tidy_disk,
};
