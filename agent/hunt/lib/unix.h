/* SPDX-License-Identifier: GPL-2.0 */
/* Unix sockets. */
#ifndef KTEARDOWN_HUNT_UNIX_H
#define KTEARDOWN_HUNT_UNIX_H

#include "hunt/kind.h"

#include <sys/socket.h>
#include <sys/un.h>

/* Binds a socket to a name in its folder, or connects it with such a socket. */
static inline int unix_name(int (*call)(int, const struct sockaddr *, socklen_t), int fd,
			    const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
	return call(fd, (struct sockaddr *)&address, sizeof(address));
}

/* Sends a descriptor through a socket. */
static inline void unix_send_fd(int through, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec text = {"x", 1};
	struct msghdr message = {.msg_iov = &text,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	MUST(sendmsg(through, &message, MSG_DONTWAIT));
}

/* A listening or receiving socket that many can use at once. */
static inline int unix_server(int type, const char *name)
{
	int fd = MUST(socket(AF_UNIX, type, 0));

	MUST(unix_name(bind, fd, name));
	return fd;
}

#endif
