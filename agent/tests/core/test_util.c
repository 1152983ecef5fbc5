// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"
#include "workload.h"

static void random_numbers(void)
{
	struct prng a = {42}, b = {42}, c = {43};
	bool seen[10] = {false};
	int i;

	/* The first outputs of splitmix64 for the seed 0, from its published reference code. */
	struct prng zero = {0};

	CHECK(prng_next(&zero) == 0xe220a8397b1dcdaf);
	CHECK(prng_next(&zero) == 0x6e789e6aa1b965f4);
	CHECK(prng_next(&zero) == 0x06c45d188009454f);

	CHECK(prng_next(&a) == prng_next(&b));
	CHECK(prng_next(&a) != prng_next(&c));
	for (i = 0; i < 1000; i++) {
		uint64_t n = prng_below(&a, 10);

		CHECK(n < 10);
		seen[n % 10] = true;
		CHECK(prng_below(&a, 1) == 0);
		CHECK(prng_below(&a, UINT64_MAX) < UINT64_MAX);
	}
	for (i = 0; i < 10; i++)
		CHECK(seen[i]);
}

static void interrupted(int signal)
{
	(void)signal;
}

#define MUCH (1 << 20)

/* A full pipe makes short writes, and the timer interrupts blocking calls. */
static void whole_transfers(void)
{
	struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = interrupted};
	unsigned char *sent = malloc(MUCH), *received = malloc(MUCH);
	int ends[2], i;
	pid_t pid;

	for (i = 0; i < MUCH; i++)
		sent[i] = i * 31 + (i >> 8);
	CHECK(!pipe(ends));
	sigaction(SIGALRM, &action, NULL);
	pid = fork();
	if (!pid) {
		setitimer(ITIMER_REAL, &every, NULL);
		_exit(write_all(ends[1], sent, MUCH) ? 1 : 0);
	}
	close(ends[1]);
	setitimer(ITIMER_REAL, &every, NULL);
	CHECK(!read_all(ends[0], received, MUCH));
	setitimer(ITIMER_REAL, &never, NULL);
	CHECK(!memcmp(sent, received, MUCH));
	waitpid(pid, &i, 0);
	CHECK(i == 0);
	CHECK(read_all(ends[0], received, 1) == -EPIPE);
	close(ends[0]);
	CHECK(write_all(-1, sent, 1) == -EBADF);
	free(sent);
	free(received);
}

static void files(void)
{
	char path[] = "/tmp/kteardown-test-XXXXXX", text[8], longer[400];
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	CHECK(!write_file(path, "%s-%d", "abc", 12));
	CHECK(read_file(path, text, sizeof(text)) == 6);
	CHECK_TEXT(text, "abc-12");
	CHECK(!write_file(path, "0123456789"));
	CHECK(read_file(path, text, sizeof(text)) == 7);
	CHECK_TEXT(text, "0123456");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CHECK(write_file(path, "%s", longer) == -E2BIG);
	close(fd);
	unlink(path);
	CHECK(write_file(path, "x") == -ENOENT);
	CHECK(read_file(path, text, sizeof(text)) == -ENOENT);
	CHECK_TEXT(text, "");
	CHECK(read_file("/", text, sizeof(text)) == -EISDIR);
}

static void reaps_all(void)
{
	int i;

	for (i = 0; i < 20; i++)
		if (!fork())
			_exit(0);
	i = fork();
	if (!i)
		for (;;)
			pause();
	kill_and_reap_all(i);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

void test_util(void)
{
	random_numbers();
	whole_transfers();
	files();
	reaps_all();
}
