// SPDX-License-Identifier: GPL-2.0
/* A skeleton: unmap memory that was written to. Replace this with the teardown to be measured. */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "workload.h"

#define PAGE_BYTES 4096

/* Return the number of pages that are still mapped. */
static int64_t still_mapped(char *memory, int64_t pages)
{
	unsigned char resident;
	int64_t left = 0;

	for (int64_t n = 0; n < pages; n++)
		if (mincore(memory + n * PAGE_BYTES, PAGE_BYTES, &resident) == 0 || errno != ENOMEM)
			left++;
	return left;
}

/* Run one repetition. Samples and checks are sent after the measured part. */
static int run(struct trial *t)
{
	int64_t pages = wl_param_int(t, "pages"), start_ns, elapsed_ns, left;
	size_t size = (size_t)pages * PAGE_BYTES;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return wl_fail(t, "mmap: %m");
	for (int64_t n = 0; n < pages; n++)
		memory[n * PAGE_BYTES] = 1;
	wl_settle(t, 1);

	wl_profile_begin(t);
	start_ns = now_ns();
	munmap(memory, size);
	elapsed_ns = now_ns() - start_ns;
	wl_profile_end(t);

	left = still_mapped(memory, pages);
	wl_sample(t, "unmap_ns", elapsed_ns);
	wl_check(t, "unmapped", left == 0, "%lld pages left", (long long)left);
	return 0;
}

static const char *const params[] = {"pages", NULL};
static const struct workload skeleton = {
	.name = "skeleton",
	.summary = "unmap memory that was written to",
	.params = params,
	.stretch = "munmap()",
	.run = run,
};
WORKLOAD(skeleton);
