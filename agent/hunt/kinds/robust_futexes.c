// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

#include <linux/futex.h>
#include <stddef.h>

struct lock {
	struct robust_list list;
	uint32_t word;
};

/* A list of robust futexes, all of which the process that is killed holds. */
static pid_t holder;

static void hold_all(void)
{
	struct lock *locks = array(sizeof(*locks));
	static struct robust_list_head head;
	int64_t i;

	head.futex_offset = offsetof(struct lock, word) - offsetof(struct lock, list);
	head.list.next = &locks[0].list;
	for (i = 0; i < nr_objects; i++) {
		locks[i].word = syscall(SYS_gettid);
		locks[i].list.next = i + 1 < nr_objects ? &locks[i + 1].list : &head.list;
	}
	MUST(syscall(SYS_set_robust_list, &head, sizeof(head)));
}

static void make(void)
{
	ready_make();
	holder = child(0, true);
	if (holder)
		return ready_wait();
	hold_all();
	ready_say();
	wait_to_be_killed();
}

static void release(void)
{
	MUST(kill(holder, SIGKILL));
	MUST(waitpid(holder, NULL, 0));
}

KIND(robust_futexes, "processes", "robust futex that one process holds", .shape = OF_ONE,
     .limit = "memory", .call = "kill(holder)", .most = 2048, .make = make, .release = release);
