// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/fd_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	char bytes[CMSG_SPACE(FD_SOCKET_MAX * sizeof(int))];
	struct cmsghdr align;
};

int fd_socket__send(int socket, const void *bytes, size_t len, const int *fds, size_t n)
{
	struct iovec part = {(void *)bytes, len};
	union control control = {.bytes = {0}};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t sent;

	if (n > FD_SOCKET_MAX)
		return -EINVAL;
	if (n) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return (size_t)sent == len ? 0 : -EPIPE;
}

int fd_socket__receive(int socket, void *ret_bytes, size_t len, int ret_fds[FD_SOCKET_MAX])
{
	struct iovec part = {ret_bytes, len};
	union control control = {.bytes = {0}};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *c;
	size_t n = 0;
	ssize_t got;

	for (size_t i = 0; i < FD_SOCKET_MAX; i++)
		ret_fds[i] = -1;
	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (n)
		memcpy(ret_fds, CMSG_DATA(c), n * sizeof(int));
	if ((size_t)got == len)
		return 0;
	for (size_t i = 0; i < n; i++) {
		close(ret_fds[i]);
		ret_fds[i] = -1;
	}
	return -EPIPE;
}
