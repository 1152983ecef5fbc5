// SPDX-License-Identifier: GPL-2.0
/* append CGROUP FILE MB: enters the cgroup, appends to the file, and prints how long that took. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

int main(int argc, char **argv)
{
	static char page[PAGE];
	struct timespec begin, end;
	char path[200];
	int fd;

	if (argc != 4)
		return 2;
	snprintf(path, sizeof(path), "%s/cgroup.procs", argv[1]);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) != 1) {
		perror(path);
		return 1;
	}
	close(fd);
	fd = open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd < 0) {
		perror(argv[2]);
		return 1;
	}
	memset(page, 'x', sizeof(page));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (long left = atol(argv[3]) * 1024 * 1024 / PAGE; left; left--)
		if (write(fd, page, sizeof(page)) != sizeof(page)) {
			perror("write");
			return 1;
		}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("append %lld ns\n",
	       (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
	return 0;
}
