// SPDX-License-Identifier: GPL-2.0
/*
 * N processes have a file of a FUSE file system open while the server takes DELAY_MS to answer a
 * write of another process. They are killed, and have to wait for the lock of the inode when their
 * files are flushed.
 * Needs FUSE (built in, or modprobe fuse), /dev/fuse and root.
 * N: number of processes (default 50). DELAY_MS: time until the server answers (default 2000).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WHERE "/kt-fuse"

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static void reply(int dev, uint64_t unique, int error, const void *data, size_t size)
{
	char out[512];
	struct fuse_out_header header = {
		.len = sizeof(header) + size,
		.error = error,
		.unique = unique,
	};

	memcpy(out, &header, sizeof(header));
	if (size)
		memcpy(out + sizeof(header), data, size);
	/* ENOENT: the request was given up meanwhile. */
	if (write(dev, out, header.len) < 0 && errno != ENOENT)
		die("write to /dev/fuse");
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr attr = {.ino = node, .nlink = 1, .blksize = 4096};

	attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
	if (node != FUSE_ROOT_ID)
		attr.size = 4096;
	return attr;
}

static void answer_write(int dev, const char *in, int told, long delay_ms)
{
	const struct fuse_in_header *header = (void *)in;
	const struct fuse_write_in *arg = (void *)(in + sizeof(*header));
	struct fuse_write_out out = {.size = arg->size};

	if (write(told, "w", 1) != 1)
		die("pipe");
	sleep_ms(delay_ms);
	reply(dev, header->unique, 0, &out, sizeof(out));
}

static void answer(int dev, const char *in, int told, long delay_ms)
{
	const struct fuse_in_header *header = (void *)in;

	switch (header->opcode) {
	case FUSE_INIT: {
		struct fuse_init_out out = {
			.major = 7,
			.minor = 31,
			.max_write = 4096,
			.max_readahead = 4096,
		};

		reply(dev, header->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_LOOKUP: {
		struct fuse_entry_out out = {
			.nodeid = 2,
			.entry_valid = 3600,
			.attr_valid = 3600,
			.attr = attributes(2),
		};

		if (strcmp(in + sizeof(*header), "f"))
			reply(dev, header->unique, -ENOENT, NULL, 0);
		else
			reply(dev, header->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_GETATTR: {
		struct fuse_attr_out out = {
			.attr_valid = 3600,
			.attr = attributes(header->nodeid),
		};

		reply(dev, header->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_OPEN: {
		struct fuse_open_out out = {.fh = 1};

		reply(dev, header->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_WRITE:
		answer_write(dev, in, told, delay_ms);
		break;
	case FUSE_RELEASE:
		reply(dev, header->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(dev, header->unique, -ENOSYS, NULL, 0);
	}
}

/* Serve one directory with the file "f", and write a byte to "told" when a write has arrived. */
static void serve(int dev, int told, long delay_ms)
{
	static char in[1 << 18];

	for (;;) {
		if (read(dev, in, sizeof(in)) >= 0) {
			answer(dev, in, told, delay_ms);
			continue;
		}
		if (errno != EINTR && errno != ENOENT && errno != EAGAIN)
			exit(0); /* ENODEV: unmounted */
	}
}

/* Return the state of a process, such as 'S' or 'D'. */
static char state(pid_t pid)
{
	char path[64], line[512], *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return 'X';
	if (!fgets(line, sizeof(line), file) || !(end = strrchr(line, ')')) || strlen(end) < 3)
		end = NULL;
	fclose(file);
	return end ? end[2] : 'X';
}

/* The pages of a file system whose server answers each write delay_ms late. */
static int mount_slow(long delay_ms, int told[2], pid_t *server)
{
	char options[128];
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC), file;

	if (dev < 0) {
		if (!system("modprobe fuse 2>/dev/null"))
			dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
		if (dev < 0)
			die("/dev/fuse");
	}
	if (pipe(told))
		die("pipe");
	mkdir(WHERE, 0755);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 dev);
	if (mount("kt", WHERE, "fuse", 0, options))
		die("mount");
	*server = fork();
	if (*server < 0)
		die("fork");
	if (!*server) {
		close(told[0]);
		serve(dev, told[1], delay_ms);
	}
	close(dev);
	close(told[1]);
	file = open(WHERE "/f", O_RDWR);
	if (file < 0)
		die(WHERE "/f");
	return file;
}

/* n processes that have the file open and do nothing. */
static pid_t *start(long n, const int told[2])
{
	pid_t *pids = calloc(n, sizeof(*pids));
	long i;

	if (!pids)
		die("calloc");
	for (i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (!pids[i]) {
			close(told[0]);
			for (;;)
				pause();
		}
	}
	return pids;
}

static void measure(long n, pid_t *pids, long delay_ms)
{
	long long begin = now_ns(), took;
	long stuck = 0, i;
	int status;

	for (i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	sleep_ms(delay_ms / 4);
	for (i = 0; i < n; i++)
		stuck += state(pids[i]) == 'D';
	for (i = 0; i < n; i++)
		if (waitpid(pids[i], &status, 0) != pids[i])
			die("waitpid");
	took = now_ns() - begin;
	printf("exit_ns %lld ns\n", took);
	printf("stuck %ld count\n", stuck);
	fflush(stdout);
}

int main(void)
{
	long n = atol(getenv("N") ?: "50"), delay_ms = atol(getenv("DELAY_MS") ?: "2000");
	pid_t server, writer, *pids;
	int file, told[2], status;
	char c;

	if (n < 1 || delay_ms < 500)
		return 1;
	file = mount_slow(delay_ms, told, &server);
	pids = start(n, told);
	writer = fork();
	if (writer < 0)
		die("fork");
	if (!writer)
		_exit(pwrite(file, "x", 1, 0) == 1 ? 0 : 1);
	/* From here the writer holds the lock of the inode until the server answers. */
	if (read(told[0], &c, 1) != 1) {
		fprintf(stderr, "no write arrived at the server\n");
		return 1;
	}
	measure(n, pids, delay_ms);
	if (waitpid(writer, &status, 0) != writer || status) {
		fprintf(stderr, "the write failed\n");
		return 1;
	}
	close(file);
	umount2(WHERE, MNT_DETACH);
	kill(server, SIGKILL);
	waitpid(server, &status, 0);
	return 0;
}
