// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/socket.h>

#include <linux/vm_sockets.h>

static int open_one(int64_t i)
{
	struct sockaddr_vm at = {
		.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = 2000 + i};
	int fd = MUST(socket(AF_VSOCK, SOCK_STREAM, 0));

	MUST(bind(fd, (void *)&at, sizeof(at)));
	MUST(listen(fd, 1));
	return fd;
}

KIND(vsock_listeners, "sockets", "listening vsock socket at a port of its own", .modules = "vsock",
     .shape = OF_ONE, .limit = "nofile", .needs = "CONFIG_VSOCKETS", .open = open_one);
