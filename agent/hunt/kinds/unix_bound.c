// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/unix.h"

static int open_one(int64_t i)
{
	return unix_server(SOCK_STREAM, name_of(i));
}

KIND(unix_bound, "ipc", "unix socket with a name of its own", .shape = OF_ONE, .limit = "nofile",
     .needs = "CONFIG_UNIX", .open = open_one);
