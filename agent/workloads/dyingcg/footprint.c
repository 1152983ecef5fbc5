// SPDX-License-Identifier: GPL-2.0
#include "footprint.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/meminfo.h"

#define LOOK_MS 100
#define STILL_MS 1000
#define PATIENCE_MS 30000
/* Changes up to this size are ignored: a kernel thread may start or exit. */
#define STILL_KB 32

int64_t footprint_kb(const struct footprint *f)
{
	return f->slab + f->percpu;
}

int footprint_read(struct footprint *f)
{
	struct meminfo m;
	int error = meminfo_read(&m);

	*f = (struct footprint){.slab = m.slab, .percpu = m.percpu};
	return !error && (m.slab < 0 || m.percpu < 0) ? -EIO : error;
}

int footprint_settle(struct footprint *f, int64_t at_least_ms)
{
	int64_t still_ms = 0, waited_ms, before_kb;
	int error;

	sleep_ms(at_least_ms);
	error = footprint_read(f);
	before_kb = footprint_kb(f);
	for (waited_ms = 0; !error && waited_ms < PATIENCE_MS; waited_ms += LOOK_MS) {
		if (still_ms >= STILL_MS)
			return 0;
		sleep_ms(LOOK_MS);
		error = footprint_read(f);
		still_ms += LOOK_MS;
		if (llabs(footprint_kb(f) - before_kb) > STILL_KB) {
			before_kb = footprint_kb(f);
			still_ms = 0;
		}
	}
	return error ? error : -ETIMEDOUT;
}
