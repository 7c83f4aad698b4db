// SPDX-License-Identifier: GPL-2.0-or-later
#include "dwarf/inflated.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#define PAGE	  ((size_t)4096)
#define BLOCK	  ((size_t)64 << 10) /* what is filled at once */
#define INTERVAL  ((size_t)4 << 20)  /* between two states that are kept; 87 KiB each */
#define SMALL	  ((size_t)8 << 20)  /* to be filled whole */
#define HEADER	  ((size_t)256)	     /* of a unit, with what is read of its first entry */
#define INPUT	  ((size_t)256 << 10)
#define MAX_PIECE ((size_t)1 << 30) /* the decompressor counts in 32 bits */
#define MAX_RATIO 4096

/* From where decompressing can go on. */
struct state {
	struct inflate_state inflate;
	uint64_t in; /* offset in the file of what it has not been given yet */
};

struct inflated {
	struct inflated *next, *previous;
	struct inflated_options options;
	int fd;
	uint64_t in_end;
	uint8_t *out; /* a mapping of `mapped` bytes */
	size_t size, mapped;
	bool damaged;
	bool broken; /* the stream as it is read now */
	struct state now;
	size_t at;	      /* what it gives next; a multiple of BLOCK */
	struct state *states; /* at 0, INTERVAL, ...; a mapping */
	size_t n_states, max_states;
	uint8_t *filled;    /* bits, of blocks */
	size_t seen;	    /* so far units were looked for */
	size_t unit;	    /* the one whose header comes next, */
	uint8_t header[12]; /* and as much of it as came by */
	size_t n_header;
	size_t keep_until;
	uint8_t input[INPUT];
	uint8_t passed[BLOCK]; /* what nobody asked for */
};

static struct inflated *all; /* for the handler */
static struct sigaction earlier;

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int open_up(struct inflated *i, size_t from, size_t to)
{
	return mprotect(i->out + from, to - from, PROT_READ | PROT_WRITE) ? -ENOMEM : 0;
}

static void feed(struct inflated *i)
{
	size_t len = min(INPUT, i->in_end - i->now.in);
	ssize_t n;

	do
		n = len ? pread(i->fd, i->input, len, (off_t)i->now.in) : 0;
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		i->broken = true;
		return;
	}
	i->now.in += (uint64_t)n;
	i->now.inflate.next_in = i->input;
	i->now.inflate.avail_in = (uint32_t)n;
}

/* The next `len` bytes; zeros from where the stream makes no sense. */
static void decompress(struct inflated *i, uint8_t *out, size_t len)
{
	struct inflate_state *s = &i->now.inflate;
	size_t done = 0;

	while (!i->broken && done < len) {
		size_t room = min(len - done, MAX_PIECE);

		s->next_out = out + done;
		s->avail_out = (uint32_t)room;
		if (isal_inflate(s) != ISAL_DECOMP_OK)
			i->broken = true;
		done += room - s->avail_out;
		if (done == len || !s->avail_out)
			continue;
		if (s->block_state == ISAL_BLOCK_FINISH)
			i->broken = true; /* it has ended too early */
		else if (!s->avail_in && !i->broken)
			feed(i);
	}
	i->damaged |= i->broken;
	memset(out + done, 0, len - done);
	i->at += len;
}

/* Keep the pages with any of [from, to) of a block that was decompressed by the way. */
static void keep(struct inflated *i, const uint8_t *block, size_t at, size_t len, size_t from,
		 size_t to)
{
	from = from < at ? at : from & ~(PAGE - 1);
	to = min((to + PAGE - 1) & ~(PAGE - 1), at + len);
	/* if not, it is decompressed again where it is read */
	if (from < to && !open_up(i, from, (to + PAGE - 1) & ~(PAGE - 1)))
		memcpy(i->out + from, block + (from - at), to - from);
}

/* By the length that it starts with (DWARF 5, 7.4). */
static size_t next_unit(const struct inflated *i)
{
	uint32_t word;
	uint64_t len;
	size_t own = sizeof(word);

	memcpy(&word, i->header, sizeof(word));
	len = word;
	if (word == UINT32_MAX) {
		memcpy(&len, i->header + sizeof(word), sizeof(len));
		own += sizeof(len);
	}
	return len > i->size - i->unit ? SIZE_MAX : i->unit + own + len;
}

/* Headers of units in a block that comes by for the first time; of them, not more has to be kept
 * where the block was wanted. */
static void see_units(struct inflated *i, const uint8_t *block, size_t at, size_t len, bool wanted)
{
	if (!wanted && i->keep_until > at)
		keep(i, block, at, len, at, i->keep_until);
	while (i->unit < at + len) {
		size_t from = i->unit + i->n_header;
		size_t n = min(sizeof(i->header) - i->n_header, at + len - from);

		memcpy(i->header + i->n_header, block + (from - at), n);
		i->n_header += n;
		i->keep_until = i->unit + HEADER;
		if (!wanted)
			keep(i, block, at, len, i->unit, i->keep_until);
		if (i->n_header < sizeof(i->header))
			break;
		i->unit = next_unit(i);
		i->n_header = 0;
	}
}

/* The next block, to its place or by the way. */
static int pass_block(struct inflated *i, bool wanted)
{
	size_t at = i->at, len = min(BLOCK, i->size - at);
	uint8_t *out = wanted ? i->out + at : i->passed;

	if (wanted && open_up(i, at, at + BLOCK))
		return -ENOMEM;
	decompress(i, out, len);
	if (i->options.units && at == i->seen) {
		see_units(i, out, at, len, wanted);
		i->seen = at + len;
	}
	if (wanted)
		i->filled[at / BLOCK / 8] |= (uint8_t)(1u << at / BLOCK % 8);
	if (i->at == i->n_states * INTERVAL && i->n_states < i->max_states) {
		i->states[i->n_states] = i->now;
		i->states[i->n_states++].in -= i->now.inflate.avail_in;
	}
	return 0;
}

static void go_back(struct inflated *i, size_t state)
{
	i->now = i->states[state];
	i->now.inflate.avail_in = 0;
	i->at = state * INTERVAL;
	i->broken = false;
}

static int fill_all(struct inflated *i)
{
	if (open_up(i, 0, i->mapped))
		return -ENOMEM;
	go_back(i, 0);
	decompress(i, i->out, i->size);
	memset(i->filled, 0xff, (i->mapped / BLOCK + 7) / 8);
	return 0;
}

static int fill(struct inflated *i, size_t number)
{
	size_t at = number * BLOCK, state = min(at / INTERVAL, i->n_states - 1);
	int err = 0;

	if (i->options.whole)
		return fill_all(i);
	if (i->at > at || i->at < state * INTERVAL)
		go_back(i, state);
	while (!err && i->at <= at)
		err = pass_block(i, i->at == at);
	return err ? fill_all(i) : 0; /* a process may have so many mappings; all of it is one */
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	const uint8_t *addr = info->si_addr;
	int saved = errno;

	(void)number, (void)context;
	for (struct inflated *i = all; i; i = i->next) {
		size_t block = (size_t)(addr - i->out) / BLOCK;

		if (addr < i->out || addr >= i->out + i->mapped)
			continue;
		if (i->filled[block / 8] >> block % 8 & 1 || fill(i, block))
			break;
		errno = saved;
		return;
	}
	/* not ours: it happens again, and whose it is sees it then */
	sigaction(SIGSEGV, &earlier, NULL);
}

static int handle_faults(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, now;

	if (sigaction(SIGSEGV, NULL, &now))
		return -errno;
	if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)
		return 0;
	return sigaction(SIGSEGV, &action, &earlier) ? -errno : 0;
}

/* Returns 0, -EINVAL, -EIO or -ENOMEM. */
static int begin_zlib(struct inflated *i, uint64_t offset)
{
	uint8_t head[2];

	if (i->in_end - offset < sizeof(head))
		return -EINVAL;
	if (pread(i->fd, head, sizeof(head), (off_t)offset) != sizeof(head))
		return -EIO;
	/* deflate, and no dictionary of the sender's */
	if ((head[0] & 0xf) != 8 || (head[0] << 8 | head[1]) % 31 || head[1] & 0x20)
		return -EINVAL;
	i->max_states = i->size / INTERVAL + 1;
	i->states = mmap(NULL, i->max_states * sizeof(*i->states), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	i->filled = calloc(i->mapped / BLOCK / 8 + 1, 1);
	if (i->states == MAP_FAILED || !i->filled)
		return -ENOMEM;
	isal_inflate_init(&i->states[0].inflate);
	i->states[0].inflate.crc_flag = ISAL_DEFLATE;
	i->states[0].in = offset + sizeof(head);
	i->n_states = 1;
	go_back(i, 0);
	return handle_faults();
}

static int read_all(const struct inflated *i, uint64_t offset, uint8_t *ret_bytes)
{
	while (offset < i->in_end) {
		ssize_t n = pread(i->fd, ret_bytes, min(i->in_end - offset, MAX_PIECE),
				  (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		ret_bytes += n;
		offset += (uint64_t)n;
	}
	return 0;
}

static int decompress_zstd(struct inflated *i, uint64_t offset)
{
	size_t len = i->in_end - offset;
	uint8_t *bytes = malloc(len);
	int err = bytes ? open_up(i, 0, i->mapped) : -ENOMEM;

	if (!err)
		err = read_all(i, offset, bytes);
	if (!err && ZSTD_decompress(i->out, i->size, bytes, len) != i->size)
		err = -EINVAL;
	free(bytes);
	return err;
}

struct inflated *inflated__new(int fd, uint64_t offset, uint64_t len, uint64_t size,
			       const struct inflated_options *options)
{
	struct inflated *i;
	int err;

	if (!size || size / MAX_RATIO > len || __builtin_add_overflow(offset, len, &len)) {
		errno = EINVAL;
		return NULL;
	}
	i = calloc(1, sizeof(*i));
	if (!i)
		return NULL;
	i->options = *options;
	i->options.whole = options->whole || size <= SMALL;
	i->fd = fd;
	i->in_end = len;
	i->size = size;
	i->mapped = (size + BLOCK - 1) & ~(BLOCK - 1);
	i->states = MAP_FAILED;
	i->out = mmap(NULL, i->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		      0);
	i->next = all;
	if (all)
		all->previous = i;
	all = i;
	err = i->out == MAP_FAILED	      ? -ENOMEM
	      : options->how == INFLATED_ZSTD ? decompress_zstd(i, offset)
					      : begin_zlib(i, offset);
	if (!err)
		return i;
	inflated__free(i);
	errno = -err;
	return NULL;
}

void inflated__free(struct inflated *i)
{
	if (!i)
		return;
	if (i->previous)
		i->previous->next = i->next;
	else
		all = i->next;
	if (i->next)
		i->next->previous = i->previous;
	if (i->out != MAP_FAILED)
		munmap(i->out, i->mapped);
	if (i->states != MAP_FAILED)
		munmap(i->states, i->max_states * sizeof(*i->states));
	free(i->filled);
	free(i);
}

void *inflated__bytes(const struct inflated *i)
{
	return i->out;
}

bool inflated__damaged(const struct inflated *i)
{
	return i->damaged;
}
