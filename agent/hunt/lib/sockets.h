/* SPDX-License-Identifier: GPL-2.0 */
/* Internet sockets of this machine, and TCP connections to one listener. */
#ifndef KTEARDOWN_HUNT_SOCKETS_H
#define KTEARDOWN_HUNT_SOCKETS_H

#include "hunt/lib/netlink.h"

#include <netinet/in.h>

static inline struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* A socket of this type at the port; `option` of SOL_SOCKET is set unless it is 0. */
static inline int bound(int type, int option, int port)
{
	struct sockaddr_in at = loopback(port);
	int fd = MUST(socket(AF_INET, type, 0)), one = 1;

	if (option)
		MUST(setsockopt(fd, SOL_SOCKET, option, &one, sizeof(one)));
	MUST(bind(fd, (void *)&at, sizeof(at)));
	return fd;
}

static inline int listener(int option, int port)
{
	int fd = bound(SOCK_STREAM, option, port);

	MUST(listen(fd, 1000000));
	return fd;
}

static inline int connected(int type, int port)
{
	struct sockaddr_in to = loopback(port);
	int fd = MUST(socket(AF_INET, type, 0));

	MUST(connect(fd, (void *)&to, sizeof(to)));
	return fd;
}

/* Connections, the ends of which are two descriptors of the owner. */
static struct {
	int listener, (*ends)[2];
} tcp;

static inline void tcp_prepare(void)
{
	net_namespace_kept();
	tcp.listener = listener(SO_REUSEADDR, 6000);
	tcp.ends = array(sizeof(*tcp.ends));
}

static inline void tcp_add(int64_t i)
{
	tcp.ends[i][0] = connected(SOCK_STREAM, 6000);
	tcp.ends[i][1] = MUST(accept(tcp.listener, NULL, NULL));
}

static inline void tcp_remove(int64_t i)
{
	close(tcp.ends[i][0]);
	close(tcp.ends[i][1]);
}

#endif
