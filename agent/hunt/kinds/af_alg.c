// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <linux/if_alg.h>
#include <sys/socket.h>

static int open_one(int64_t i)
{
	struct sockaddr_alg hash = {
		.salg_family = AF_ALG, .salg_type = "hash", .salg_name = "sha256"};
	int fd = MUST(socket(AF_ALG, SOCK_SEQPACKET, 0));

	(void)i;
	MUST(bind(fd, (void *)&hash, sizeof(hash)));
	return fd;
}

KIND(af_alg, "sockets", "AF_ALG socket of one hash", .modules = "af_alg algif_hash",
     .shape = ON_ONE, .limit = "nofile", .needs = "CONFIG_CRYPTO_USER_API_HASH", .open = open_one);
