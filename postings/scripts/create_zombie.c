// SPDX-License-Identifier: GPL-2.0
/*
 * The holder of freezer.sh, after the method of
 * 20250716062639.1528066-1-zhangzihuan@kylinos.cn: N children exit at once, are not waited
 * for, and stay zombies until this process ends, a minute later or when it is killed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST 1000000
#define HOLD_S 60

int main(int argc, char **argv)
{
	char *end = NULL;
	long zombies = argc == 2 ? strtol(argv[1], &end, 10) : 0;

	if (zombies < 1 || zombies > MOST || *end) {
		fprintf(stderr, "usage: create_zombie N, with N from 1 to %d\n", MOST);
		return 2;
	}
	for (long made = 0; made < zombies; made++) {
		pid_t child = fork();

		if (child < 0) {
			perror("fork");
			return 1;
		}
		if (child == 0)
			_exit(0);
	}
	printf("%ld zombies\n", zombies);
	fflush(stdout);
	sleep(HOLD_S);
	return 0;
}
