// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/comms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct past_comm {
	struct past_comm *before;
	uint32_t last_generation;
	uint64_t until;
	char name[PMP_COMM_LEN];
};

void comms__read(struct comms *c, pid_t pid)
{
	char path[64], name[PMP_COMM_LEN + 1] = "";
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, name, PMP_COMM_LEN);
		close(fd);
	}
	if (n <= 0)
		return;
	if (name[n - 1] == '\n')
		n--;
	memset(c->now, 0, PMP_COMM_LEN);
	memcpy(c->now, name, (size_t)n < PMP_COMM_LEN ? (size_t)n : PMP_COMM_LEN - 1);
}

int comms__exec(struct comms *c, uint32_t last_generation, uint64_t now)
{
	struct past_comm *past = calloc(1, sizeof(*past));

	if (!past)
		return -ENOMEM;
	memcpy(past->name, c->now, sizeof(past->name));
	past->last_generation = last_generation;
	past->until = now;
	past->before = c->past;
	c->past = past;
	return 0;
}

const char *comms__in(const struct comms *c, uint32_t generation)
{
	const char *name = c->now;

	if (!generation)
		return name;
	for (const struct past_comm *past = c->past; past; past = past->before) {
		if (generation > past->last_generation)
			break;
		name = past->name;
	}
	return name;
}

void comms__forget(struct comms *c, uint64_t until)
{
	struct past_comm **at = &c->past, *past;

	while (*at && (*at)->until >= until)
		at = &(*at)->before;
	while ((past = *at)) {
		*at = past->before;
		free(past);
	}
}
