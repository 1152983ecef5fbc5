// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

KIND(tcp_ends, "sockets", "TCP connection over loopback, both ends of which are closed",
     .shape = OF_ONE, .limit = "nofile", .needs = "CONFIG_INET", .most = 28000, .exit = true,
     .prepare = tcp_prepare, .add = tcp_add, .remove = tcp_remove);
