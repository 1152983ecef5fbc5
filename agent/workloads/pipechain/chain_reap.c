// SPDX-License-Identifier: GPL-2.0
/* How the links' parent lets go of them, be it the holder or the agent. */
#include <signal.h>
#include <sys/wait.h>

#include "chain_parts.h"

static void count(const struct chain_spec *spec, struct chain_end *end, const siginfo_t *info)
{
	if (info->si_code == CLD_KILLED && info->si_status == spec->signo)
		end->killed++;
}

/* By number: the kernel looks at that one child only. */
static void reap_known(const struct chain_spec *spec, struct chain_shared *m)
{
	for (int64_t i = 0; i < spec->links; i++) {
		siginfo_t info;
		int64_t which = spec->reap == CHAIN_OLDEST ? i : spec->links - 1 - i;

		if (!waitid(P_PID, m->pids[which], &info, WEXITED))
			count(spec, &m->end, &info);
		else
			m->end.vanished++;
	}
}

static void reap_any(const struct chain_spec *spec, struct chain_shared *m)
{
	siginfo_t info;
	int64_t left = spec->links;

	/* Of the group only: the agent has other children. */
	while (!waitid(P_PGID, m->group, &info, WEXITED)) {
		count(spec, &m->end, &info);
		left--;
	}
	m->end.vanished = left;
}

void chain_reap_links(const struct chain_spec *spec, struct chain_shared *m)
{
	/* A nested link becomes our child when its parent dies, and cannot be waited for before. */
	if (spec->reap == CHAIN_ANY || spec->make == CHAIN_NESTED)
		reap_any(spec, m);
	else
		reap_known(spec, m);
	m->end.gone_ns = now_ns();
}
