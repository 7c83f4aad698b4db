/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fd_socket: messages over a stream socket that hand file descriptors on (SCM_RIGHTS, unix(7)).
 */
#ifndef PMP_FD_SOCKET_H
#define PMP_FD_SOCKET_H

#include <stddef.h>

#define FD_SOCKET_MAX 2 /* descriptors a message */

/* Send `len` bytes and `n` descriptors, which stay the caller's. Returns 0 or -errno. */
int fd_socket__send(int socket, const void *bytes, size_t len, const int *fds, size_t n);

/*
 * Receive exactly `len` bytes. The descriptors are the caller's, -1 where none came: a message
 * may bring none. Returns 0; -EPIPE: the other end is closed, or has sent less; -errno.
 */
int fd_socket__receive(int socket, void *ret_bytes, size_t len, int ret_fds[FD_SOCKET_MAX]);

#endif
