// SPDX-License-Identifier: GPL-2.0
/*
 * On the instruction clock two boots with the same seed execute exactly the same
 * instructions, in one memory layout. Another seed gives another layout: the spread over
 * several seeds shows how much of a figure depends on the layout.
 */
#include <fcntl.h>
#include <linux/random.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

#define MAX_CHILDREN 128
#define PAGE 4096

/*
 * From now on everything that the kernel draws (the order of a new slab's objects, for
 * example) follows from the seed. RNDRESEEDCRNG makes the kernel use the new pool at once,
 * instead of a minute later.
 */
static void seed_kernel(struct prng *p)
{
	/* A header of 8 bytes, and the words that follow it. */
	union {
		struct rand_pool_info info;
		uint64_t words[1 + 8];
	} pool = {.info = {.entropy_count = 512, .buf_size = 8 * sizeof(uint64_t)}};
	int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
	size_t i;

	if (fd < 0)
		agent_error("cannot open /dev/urandom: %m");
	for (i = 1; i < ARRAY_SIZE(pool.words); i++)
		pool.words[i] = prng_next(p);
	if (ioctl(fd, RNDADDENTROPY, &pool.info) || ioctl(fd, RNDRESEEDCRNG))
		agent_error("cannot add the seed to the kernel's random numbers: %m");
	close(fd);
}

/* Exists until it is killed, and uses as many pages and pipes as the seed says. */
static void child(uint64_t pages, uint64_t pipes)
{
	char *memory = mmap(NULL, (pages + 1) * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ends[2];
	uint64_t i;

	for (i = 0; memory != MAP_FAILED && i < pages; i++)
		memory[i * PAGE] = 1;
	for (i = 0; i < pipes; i++)
		if (pipe(ends))
			break;
	for (;;)
		pause();
}

void perturb(uint64_t seed)
{
	struct prng p = {seed};
	pid_t children[MAX_CHILDREN];
	struct timespec phase;
	int count, i;

	if (!seed)
		return;
	seed_kernel(&p);
	count = 16 + prng_below(&p, MAX_CHILDREN - 16);
	for (i = 0; i < count; i++) {
		uint64_t pages = prng_below(&p, 64), pipes = prng_below(&p, 4);

		children[i] = fork();
		if (children[i] < 0)
			agent_error("cannot fork a process that perturbs the guest: %m");
		if (!children[i])
			child(pages, pipes);
	}
	/* Long enough for all of them to reach pause(). */
	sleep_ms(20);
	/*
	 * They are freed in another order than they were allocated, which shuffles every free
	 * list.
	 */
	for (i = count; i > 0; i--) {
		int victim = prng_below(&p, i);

		kill(children[victim], SIGKILL);
		waitpid(children[victim], NULL, 0);
		children[victim] = children[i - 1];
	}
	/* Up to two ticks of a 100 Hz kernel: sets the phase of the timer. */
	phase = (struct timespec){.tv_nsec = prng_below(&p, 20000000)};
	nanosleep(&phase, NULL);
}
