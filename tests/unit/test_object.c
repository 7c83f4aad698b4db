// SPDX-License-Identifier: GPL-2.0-or-later
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc/elf_file.h"
#include "proc/elf_image.h"
#include "proc/linkmap.h"
#include "proc/object.h"
#include "proc/object_cache.h"
#include "proc/object_file.h"

static struct object_cache *cache;

static int new_cache(void **state)
{
	cache = object_cache__new();
	return cache ? 0 : -1;
}

/* every test gives back what it holds */
static int free_cache(void **state)
{
	size_t left = object_cache__count(cache);

	object_cache__free(cache);
	return left ? -1 : 0;
}

static struct objects *open_self(void)
{
	struct objects *o = objects__new(getpid(), cache);
	struct maps *m = maps__read(getpid());

	assert_non_null(o);
	assert_non_null(m);
	assert_int_equal(objects__set_maps(o, m), 0);
	maps__free(m);
	return o;
}

/* an address in a library that is always there with libelf */
static uint64_t zlib(void)
{
	return (uintptr_t)dlsym(RTLD_DEFAULT, "crc32");
}

/* every loaded object: the bias is what the dynamic linker says, the name is the link map's */
static int check_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct objects *o = arg;
	bool vdso = info->dlpi_addr && info->dlpi_addr == getauxval(AT_SYSINFO_EHDR);
	bool main_program = !*info->dlpi_name;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t from = info->dlpi_addr + p->p_vaddr, bias = 1;
		struct object_eh_frame eh;
		struct code_place place;
		struct object *obj;

		if (p->p_type != PT_LOAD || !p->p_filesz)
			continue;
		assert_int_equal(objects__find(o, from, &obj, &bias), 0);
		assert_int_equal(bias, info->dlpi_addr);
		assert_int_equal(objects__find(o, from + p->p_filesz - 1, &obj, &bias), 0);
		assert_int_equal(bias, info->dlpi_addr);
		assert_int_equal(objects__executable(o, from), !!(p->p_flags & PF_X));
		assert_int_equal(objects__resolve(o, from, &place), 0);
		assert_ptr_equal(place.object, obj);
		assert_int_equal(place.bias, info->dlpi_addr);
		assert_true(place.start <= from && from < place.end);
		assert_false(place.anonymous);
		assert_int_equal(place.err, 0);
		assert_string_equal(place.from, vdso || main_program ? "" : info->dlpi_name);
		assert_non_null(object__elf(obj));
		assert_int_equal(object__eh_frame(obj, &eh), 0);
		assert_non_null(eh.hdr);
		/* what was read equals what is mapped */
		assert_memory_equal(eh.hdr, (void *)(uintptr_t)(eh.hdr_addr + bias), eh.hdr_len);
		assert_memory_equal(eh.eh_frame, (void *)(uintptr_t)(eh.eh_frame_addr + bias),
				    eh.eh_frame_len);
	}
	return 0;
}

static void test_self(void **state)
{
	struct objects *o = open_self();

	dl_iterate_phdr(check_loaded, o);
	objects__free(o);
}

static void test_one_object_per_file(void **state)
{
	struct objects *o = open_self();
	struct object *code, *data, *other;
	static int variable = 1;
	uint64_t bias, data_bias;

	assert_int_equal(objects__find(o, (uintptr_t)&test_self, &code, &bias), 0);
	assert_int_equal(objects__find(o, (uintptr_t)&variable, &data, &data_bias), 0);
	assert_ptr_equal(code, data);
	assert_int_equal(bias, data_bias);
	assert_int_equal(objects__find(o, zlib(), &other, &bias), 0);
	assert_ptr_not_equal(code, other);
	objects__free(o);
}

static void test_nothing_there(void **state)
{
	uint8_t *jit = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *anon = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct objects *o = open_self();
	struct object *obj = (struct object *)1;
	uint64_t bias = 5;

	assert_int_equal(objects__find(o, 0, &obj, &bias), -ENOENT);
	assert_int_equal(objects__find(o, (uintptr_t)anon, &obj, &bias), -ENOENT);
	assert_false(objects__executable(o, (uintptr_t)anon));
	assert_true(objects__find(o, (uintptr_t)jit, &obj, &bias) < 0);
	assert_true(objects__executable(o, (uintptr_t)jit));
	assert_ptr_equal(obj, (void *)1);
	assert_int_equal(bias, 5);
	munmap(jit, 4096);
	munmap(anon, 4096);
	objects__free(o);
}

static void test_not_an_elf_file(void **state)
{
	char name[] = "/tmp/test_object.XXXXXX";
	int fd = mkstemp(name);
	struct objects *o;
	struct object *obj;
	uint64_t bias;
	void *map;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, name, sizeof(name)), sizeof(name));
	map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	o = open_self();
	for (int i = 0; i < 2; i++)
		assert_int_equal(objects__find(o, (uintptr_t)map, &obj, &bias), -EINVAL);
	objects__free(o);
	munmap(map, 4096);
	close(fd);
	unlink(name);
}

static void copy_library(const char *name)
{
	struct objects *o = open_self();
	struct object *obj;
	uint64_t bias;
	void *bytes;
	size_t size;
	FILE *f;

	assert_int_equal(objects__find(o, zlib(), &obj, &bias), 0);
	size = elf_file__size(object__file(obj));
	assert_int_equal(elf_file__read_alloc(object__file(obj), 0, size, SIZE_MAX - 1, &bytes), 0);
	f = fopen(name, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	fclose(f);
	free(bytes);
	objects__free(o);
}

/* a library loaded later, its file deleted, loaded twice with two biases */
static void test_deleted_and_loaded_twice(void **state)
{
	char dir[] = "/tmp/test_object.XXXXXX", name[64];
	struct objects *o = open_self();
	struct maps *m;
	struct object *first, *second;
	uint64_t first_bias, second_bias;
	void *one, *two, *addr_one, *addr_two;
	struct object_file_id id;
	struct code_place place;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/a b.so", dir);
	copy_library(name);
	one = dlmopen(LM_ID_NEWLM, name, RTLD_NOW);
	two = dlmopen(LM_ID_NEWLM, name, RTLD_NOW);
	assert_non_null(one);
	assert_non_null(two);
	addr_one = dlsym(one, "crc32");
	addr_two = dlsym(two, "crc32");
	assert_ptr_not_equal(addr_one, addr_two);
	unlink(name);
	rmdir(dir);

	m = maps__read(getpid());
	assert_non_null(m);
	assert_int_equal(objects__set_maps(o, m), 0);
	fd = object_file__open_mapped(getpid(), maps__find(m, (uintptr_t)addr_one), &id);
	maps__free(m);
	assert_int_equal(objects__find(o, (uintptr_t)addr_one, &first, &first_bias), 0);
	assert_int_equal(objects__find(o, (uintptr_t)addr_two, &second, &second_bias), 0);
	if (fd >= 0) { /* not so without the privilege to see map_files */
		assert_ptr_equal(first, second);
		close(fd);
	}
	assert_int_equal((uintptr_t)addr_one - first_bias, (uintptr_t)addr_two - second_bias);
	assert_int_equal(objects__resolve(o, (uintptr_t)addr_one, &place), 0);
	assert_string_equal(place.from, name);
	assert_string_equal(object__path(first), name);
	objects__free(o);
	dlclose(one);
	dlclose(two);
}

/* the object as the target's memory has it: same build id, same .eh_frame */
static void test_image(void **state)
{
	struct objects *o = open_self();
	struct elf_image image;
	struct elf_file *f;
	struct elf_range eh_frame, hdr;
	struct object_eh_frame eh;
	struct object *obj;
	uint64_t bias;
	size_t len, image_len;
	const uint8_t *id, *image_id;
	pid_t pid = getpid();
	void *bytes;

	assert_int_equal(objects__find(o, zlib(), &obj, &bias), 0);
	assert_int_equal(elf_image__read(memory__read, &pid, bias, 0, &image), 0);
	f = elf_file__from_memory(image.bytes, image.len);
	assert_non_null(f);
	id = object__build_id(obj, &len);
	image_id = elf_file__build_id(f, &image_len);
	assert_true(len > 0);
	assert_int_equal(len, image_len);
	assert_memory_equal(id, image_id, len);
	assert_true(object_file__same_build_id(f, object__file(obj)));
	assert_int_equal(elf_file__eh_frame(f, &eh_frame, &hdr), 0);
	assert_int_equal(object__eh_frame(obj, &eh), 0);
	assert_int_equal(eh_frame.addr, eh.eh_frame_addr);
	assert_true(eh_frame.len >= eh.eh_frame_len);
	assert_int_equal(
		elf_file__read_alloc(f, eh_frame.offset, eh.eh_frame_len, SIZE_MAX - 1, &bytes), 0);
	assert_memory_equal(bytes, eh.eh_frame, eh.eh_frame_len);
	assert_non_null(elf_file__libelf(f));
	free(bytes);
	elf_file__free(f);
	elf_image__free(&image);
	assert_int_equal(elf_image__read(memory__read, &pid, 4096, 0, &image), -EFAULT);
	objects__free(o);
}

static void test_open_regular_only(void **state)
{
	char dir[] = "/tmp/test_object.XXXXXX", name[64];
	struct object_file_id id;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/fifo", dir);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(object_file__open_regular(AT_FDCWD, name, &id), -EINVAL);
	assert_int_equal(object_file__open_regular(AT_FDCWD, dir, &id), -EINVAL);
	assert_int_equal(object_file__open_regular(AT_FDCWD, "/dev/null", &id), -EINVAL);
	assert_int_equal(object_file__open_regular(AT_FDCWD, "/nowhere", &id), -ENOENT);
	assert_int_equal(object_file__open_path(getpid(), "relative", &id), -ENOENT);
	fd = object_file__open_path(getpid(), "/etc/passwd", &id);
	assert_true(fd >= 0);
	close(fd);
	unlink(name);
	rmdir(dir);
}

/* memory for link maps: one flat buffer */
struct flat {
	uint64_t base;
	uint8_t bytes[8192];
	size_t reads;
};

static int flat_read(void *arg, uint64_t addr, void *ret_bytes, size_t len)
{
	struct flat *f = arg;

	f->reads++;
	if (addr < f->base || addr - f->base > sizeof(f->bytes) ||
	    len > sizeof(f->bytes) - (addr - f->base))
		return -EFAULT;
	memcpy(ret_bytes, f->bytes + (addr - f->base), len);
	return 0;
}

static void put(struct flat *f, size_t at, uint64_t value)
{
	memcpy(f->bytes + at, &value, sizeof(value));
}

static void test_linkmap_hostile(void **state)
{
	const Elf64_Phdr segments[] = {{.p_type = PT_PHDR, .p_vaddr = 64},
				       {.p_type = PT_DYNAMIC, .p_vaddr = 256}};
	struct linkmap_start start = {.phdr = 0x10040, .n_phdr = 2};
	struct flat f = {.base = 0x10000};
	struct linkmap *l;
	size_t n;

	memcpy(f.bytes + 64, segments, sizeof(segments));
	put(&f, 256, DT_DEBUG);
	put(&f, 264, 0x10200);
	put(&f, 0x200, 2);	 /* r_debug: version */
	put(&f, 0x208, 0x10300); /* r_map */
	put(&f, 0x228, 0x10200); /* r_next: itself */
	put(&f, 0x308, 0x10400); /* first: name */
	put(&f, 0x310, 0x1111);	 /* ld */
	put(&f, 0x318, 0x10330); /* next */
	put(&f, 0x338, 0x10408); /* second: name */
	put(&f, 0x340, 0x2222);	 /* ld */
	put(&f, 0x348, 0x10300); /* next: the first again */
	put(&f, 0x350, 0x10300); /* prev */
	memcpy(f.bytes + 0x408, "lib\nx", 6);
	l = linkmap__read(flat_read, &f, &start);
	assert_non_null(l);
	assert_string_equal(linkmap__entries(l, &n)[1].name, "lib\nx");
	assert_int_equal(linkmap__entries(l, &n)[1].dynamic, 0x2222);
	assert_true(n <= 256);
	linkmap__free(l);

	/* names without an end, pointers to nowhere, too many segments */
	memset(f.bytes + 0x400, 'a', sizeof(f.bytes) - 0x400);
	l = linkmap__read(flat_read, &f, &start);
	assert_non_null(l);
	linkmap__entries(l, &n);
	assert_int_equal(n, 0);
	linkmap__free(l);
	start.n_phdr = UINT64_MAX;
	l = linkmap__read(flat_read, &f, &start);
	assert_non_null(l);
	linkmap__free(l);
	assert_true(f.reads < 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_one_object_per_file),
		cmocka_unit_test(test_nothing_there),
		cmocka_unit_test(test_not_an_elf_file),
		cmocka_unit_test(test_deleted_and_loaded_twice),
		cmocka_unit_test(test_image),
		cmocka_unit_test(test_open_regular_only),
		cmocka_unit_test(test_linkmap_hostile),
	};

	return cmocka_run_group_tests(tests, new_cache, free_cache);
}
