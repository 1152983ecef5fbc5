// SPDX-License-Identifier: GPL-2.0
/*
 * The chain of pipes.sh, after the method of DragonFly BSD's commit 5eab490ea55e: N processes,
 * each of which reads from a pipe and writes to the next. When all are there, this process asks
 * the lab for ^C on its terminal, which kills them all but not itself, and waits for them.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Passes on what it reads; there is nothing to read, so it sleeps in read() until it is killed. */
static void member(int from, int to)
{
	char byte;

	signal(SIGINT, SIG_DFL);
	while (read(from, &byte, 1) == 1)
		if (write(to, &byte, 1) != 1)
			break;
	_exit(0);
}

int main(int argc, char **argv)
{
	long processes = argc == 2 ? atol(argv[1]) : 0, gone = 0;
	int first[2], last, next[2];
	long long start;

	if (processes < 1) {
		fprintf(stderr, "usage: pipes N\n");
		return 2;
	}
	signal(SIGINT, SIG_IGN);
	if (pipe(first)) {
		perror("pipe");
		return 1;
	}
	/* The writing end of the first pipe stays open, so no process reads an end of file. */
	last = first[0];
	for (long made = 0; made < processes; made++) {
		pid_t child;

		if (pipe(next) || (child = fork()) < 0) {
			perror("a process of the chain");
			return 1;
		}
		if (child == 0) {
			close(first[1]);
			close(next[0]);
			member(last, next[1]);
		}
		close(last);
		close(next[1]);
		last = next[0];
	}
	/* The last one is waiting for input before ^C comes. */
	sleep(1);
	start = now_ns();
	printf("kt-interrupt\n");
	fflush(stdout);
	while (wait(NULL) > 0)
		gone++;
	printf("gone %lld ns\n", now_ns() - start);
	return gone == processes ? 0 : 1;
}
