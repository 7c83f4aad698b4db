// SPDX-License-Identifier: GPL-2.0-or-later
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc/object.h"
#include "proc/object_cache.h"
#include "proc/object_impl.h"

/* the directory with two names, a.so and b.so, of one library */
struct fixture {
	struct object_cache *cache;
	char dir[32], a[48], b[48];
};

/* another process, in which a library is loaded */
struct child {
	pid_t pid;
	uint64_t crc; /* crc32() of that library */
};

static void copy_file(const char *from, const char *to)
{
	FILE *in = fopen(from, "re"), *out = fopen(to, "we");
	char buffer[65536];
	size_t n;

	assert_non_null(in);
	assert_non_null(out);
	while ((n = fread(buffer, 1, sizeof(buffer), in)) > 0)
		assert_int_equal(fwrite(buffer, 1, n, out), n);
	fclose(in);
	fclose(out);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	Dl_info info;

	assert_non_null(f);
	f->cache = object_cache__new();
	assert_non_null(f->cache);
	strcpy(f->dir, "/tmp/test_cache.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->a, sizeof(f->a), "%s/a.so", f->dir);
	snprintf(f->b, sizeof(f->b), "%s/b.so", f->dir);
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "crc32"), &info)); /* zlib is there with libelf */
	copy_file(info.dli_fname, f->a);
	assert_int_equal(link(f->a, f->b), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->a);
	unlink(f->b);
	rmdir(f->dir);
	object_cache__free(f->cache);
	free(f);
	return 0;
}

static uint64_t load(const char *name, void **ret_handle)
{
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	*ret_handle = handle;
	return handle ? (uintptr_t)dlsym(handle, "crc32") : 0;
}

static struct child start_child(const char *name)
{
	struct child child;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (!child.pid) {
		void *handle;
		uint64_t crc;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		crc = load(name, &handle);
		if (write(fds[1], &crc, sizeof(crc)) == sizeof(crc))
			pause();
		_exit(1);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &child.crc, sizeof(child.crc)), sizeof(child.crc));
	close(fds[0]);
	assert_true(child.crc);
	return child;
}

static void end_child(const struct child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
}

static void set_maps(struct objects *o, pid_t pid)
{
	struct maps *m = maps__read(pid);

	assert_non_null(m);
	assert_int_equal(objects__set_maps(o, m), 0);
	maps__free(m);
}

static struct objects *open_process(const struct fixture *f, pid_t pid)
{
	struct objects *o = objects__new(pid, f->cache);

	assert_non_null(o);
	set_maps(o, pid);
	return o;
}

static struct code_place resolve(struct objects *o, uint64_t addr)
{
	struct code_place place;

	assert_int_equal(objects__resolve(o, addr, &place), 0);
	assert_non_null(place.object);
	assert_non_null(place.from);
	return place;
}

static size_t open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* map_files needs a privilege; without it, an object is found by its path, with the same result */
static void test_shared_under_two_names(void **state)
{
	struct fixture *f = *state;
	size_t files = open_files();
	struct child child = start_child(f->b); /* before it is loaded here, too */
	void *handle;
	uint64_t crc = load(f->a, &handle);
	struct objects *own = open_process(f, getpid()), *other = open_process(f, child.pid);
	struct code_place a = resolve(own, crc), b = resolve(other, child.crc);

	assert_ptr_equal(a.object, b.object);
	assert_string_equal(a.from, f->a);
	assert_string_equal(b.from, f->b);
	assert_string_equal(object__path(a.object), f->a);
	assert_int_equal(crc - a.bias, child.crc - b.bias);
	assert_int_equal(object_cache__count(f->cache), 1);

	/* the names and the object outlive the process and whoever came first */
	objects__free(own);
	assert_int_equal(object_cache__count(f->cache), 1);
	assert_non_null(object__elf(b.object));
	assert_ptr_equal(resolve(other, child.crc).object, b.object);
	end_child(&child);
	objects__free(other);
	assert_int_equal(object_cache__count(f->cache), 0);
	assert_string_equal(a.from, f->a);
	assert_string_equal(b.from, f->b);
	dlclose(handle);
	assert_int_equal(open_files(), files);
}

static void test_vdso_is_shared(void **state)
{
	struct fixture *f = *state;
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	struct child child = start_child(f->a);
	struct objects *own = open_process(f, getpid()), *other = open_process(f, child.pid);

	if (vdso) { /* forked: at the same place */
		assert_ptr_equal(resolve(own, vdso).object, resolve(other, vdso).object);
		assert_int_equal(object_cache__count(f->cache), 1);
	}
	end_child(&child);
	objects__free(own);
	objects__free(other);
}

static void mark_freed(void *data)
{
	*(int *)data += 1;
}

static void test_outlives_its_process(void **state)
{
	struct fixture *f = *state;
	struct child child = start_child(f->a);
	struct objects *o = open_process(f, child.pid);
	struct code_place place = resolve(o, child.crc);
	struct object *obj = object__ref(place.object);
	struct object_eh_frame eh;
	int freed = 0;

	object__set_slot(obj, OBJECT_SLOT_UNWIND, &freed, mark_freed);
	end_child(&child);
	unlink(f->a);
	unlink(f->b);
	objects__free(o);
	assert_int_equal(freed, 0);
	/* nothing of it was read before */
	assert_int_equal(object__eh_frame(obj, &eh), 0);
	assert_true(eh.eh_frame_len > 0);
	assert_non_null(object__elf(obj));
	assert_string_equal(object__path(obj), place.from);
	assert_ptr_equal(object__ref(obj), obj);
	object__unref(obj);
	assert_int_equal(freed, 0);
	object__unref(obj);
	assert_int_equal(freed, 1);
	assert_int_equal(object_cache__count(f->cache), 0);
	object__unref(NULL);
	assert_null(object__ref(NULL));
}

static void test_outlives_the_cache(void **state)
{
	struct fixture *f = *state;
	struct objects *o = open_process(f, getpid());
	struct object *file = object__ref(resolve(o, (uintptr_t)&setup).object), *vdso = NULL;
	struct object_eh_frame eh;

	if (getauxval(AT_SYSINFO_EHDR))
		vdso = object__ref(resolve(o, getauxval(AT_SYSINFO_EHDR)).object);
	objects__free(o);
	object_cache__free(f->cache);
	f->cache = NULL;
	assert_int_equal(object__eh_frame(file, &eh), 0);
	object__unref(file);
	object__unref(vdso);
}

static void test_forget_old(void **state)
{
	struct fixture *f = *state;
	void *handle;
	uint64_t crc = load(f->a, &handle);
	struct objects *o = open_process(f, getpid());
	struct object *main_program = resolve(o, (uintptr_t)&setup).object;
	struct object *library = resolve(o, crc).object;
	struct object_eh_frame eh;
	uint64_t bias;

	/* what is mapped stays, also what was mapped until somebody forgets it */
	objects__forget_old(o);
	assert_int_equal(object_cache__count(f->cache), 2);
	dlclose(handle);
	set_maps(o, getpid());
	assert_int_equal(objects__find(o, crc, &library, &bias), -ENOENT);
	assert_int_equal(object_cache__count(f->cache), 2);
	assert_int_equal(object__eh_frame(library, &eh), 0);
	objects__forget_old(o);
	assert_int_equal(object_cache__count(f->cache), 1);
	assert_ptr_equal(resolve(o, (uintptr_t)&setup).object, main_program);
	objects__forget_old(o);
	assert_int_equal(object_cache__count(f->cache), 1);

	/* it comes back under another name */
	crc = load(f->b, &handle);
	set_maps(o, getpid());
	assert_string_equal(resolve(o, crc).from, f->b);
	assert_int_equal(object_cache__count(f->cache), 2);
	dlclose(handle);
	objects__free(o);
	assert_int_equal(object_cache__count(f->cache), 0);
}

/* a file that was changed in place is another one */
static void test_changed_file(void **state)
{
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct fixture *f = *state;
	void *handle;
	uint64_t crc = load(f->a, &handle);
	struct objects *o = open_process(f, getpid()), *later;
	struct object *first = resolve(o, crc).object;

	assert_int_equal(utimensat(AT_FDCWD, f->a, times, 0), 0);
	later = open_process(f, getpid());
	assert_ptr_not_equal(resolve(later, crc).object, first);
	assert_int_equal(object_cache__count(f->cache), 2);
	objects__free(o);
	objects__free(later);
	dlclose(handle);
}

static struct elf_image read_image(uint64_t base)
{
	struct elf_image image;
	pid_t pid = getpid();

	assert_int_equal(elf_image__read(memory__read, &pid, base, 0, &image), 0);
	return image;
}

static void test_images(void **state)
{
	struct fixture *f = *state;
	struct object *first, *second, *forged, *nameless[2];
	struct elf_image image;
	const Elf64_Ehdr *header;
	Dl_info info;
	size_t end = 0;

	assert_true(dladdr(dlsym(RTLD_DEFAULT, "crc32"), &info));
	image = read_image((uintptr_t)info.dli_fbase);
	first = object_cache__from_image(f->cache, &image, "one");
	image = read_image((uintptr_t)info.dli_fbase);
	second = object_cache__from_image(f->cache, &image, "two");
	assert_non_null(first);
	assert_ptr_equal(first, second);
	assert_string_equal(object__path(second), "one");

	/* the same build id, other bytes: not to be shared, whoever comes later */
	image = read_image((uintptr_t)info.dli_fbase);
	header = image.bytes;
	for (size_t i = 0; i < header->e_phnum; i++) {
		const Elf64_Phdr *p = (const void *)((char *)image.bytes + header->e_phoff);

		if (p[i].p_type == PT_LOAD && p[i].p_flags == PF_R && p[i].p_filesz)
			end = p[i].p_offset + p[i].p_filesz;
	}
	assert_true(end && end <= image.len);
	((char *)image.bytes)[end - 1] ^= 1;
	forged = object_cache__from_image(f->cache, &image, "forged");
	assert_non_null(forged);
	assert_ptr_not_equal(forged, first);
	assert_int_equal(object_cache__count(f->cache), 1);

	/* no build id: nothing tells that they are the same */
	for (int i = 0; i < 2; i++) {
		image = read_image((uintptr_t)info.dli_fbase);
		for (size_t j = 0; j < header->e_phnum; j++) {
			Elf64_Phdr *p = (void *)((char *)image.bytes +
						 ((Elf64_Ehdr *)image.bytes)->e_phoff);

			if (p[j].p_type == PT_NOTE)
				p[j].p_type = PT_NULL;
		}
		nameless[i] = object_cache__from_image(f->cache, &image, "nameless");
		assert_non_null(nameless[i]);
		object__build_id(nameless[i], &end);
		assert_int_equal(end, 0);
	}
	assert_ptr_not_equal(nameless[0], nameless[1]);
	assert_int_equal(object_cache__count(f->cache), 1);

	object__unref(nameless[0]);
	object__unref(nameless[1]);
	object__unref(forged);
	object__unref(first);
	assert_int_equal(object_cache__count(f->cache), 1);
	object__unref(second);
	assert_int_equal(object_cache__count(f->cache), 0);
}

/* another process has the same library elsewhere: other addresses in its dynamic section */
static void test_image_at_two_places(void **state)
{
	struct fixture *f = *state;
	void *one = dlmopen(LM_ID_NEWLM, f->a, RTLD_NOW),
	     *two = dlmopen(LM_ID_NEWLM, f->a, RTLD_NOW);
	struct elf_image image;
	struct object *first, *second;
	struct link_map *map;

	assert_non_null(one);
	assert_non_null(two);
	assert_int_equal(dlinfo(one, RTLD_DI_LINKMAP, &map), 0);
	image = read_image(map->l_addr);
	first = object_cache__from_image(f->cache, &image, "one");
	assert_int_equal(dlinfo(two, RTLD_DI_LINKMAP, &map), 0);
	image = read_image(map->l_addr);
	second = object_cache__from_image(f->cache, &image, "two");
	assert_non_null(first);
	assert_ptr_equal(first, second);
	object__unref(first);
	object__unref(second);
	dlclose(one);
	dlclose(two);
}

struct seen {
	struct fixture *f;
	uint64_t end, jit, text, code, stop_at;
	size_t n;
	unsigned int found;
};

static int see(const struct code_place *place, void *arg)
{
	struct seen *seen = arg;

	assert_true(place->start >= seen->end);
	assert_true(place->end > place->start);
	seen->end = place->end;
	seen->n++;
	assert_int_equal(!place->object, !!place->err);
	if (!place->object)
		assert_null(place->from);
	if (place->start == seen->jit) {
		seen->found |= 1;
		assert_null(place->object);
		assert_true(place->anonymous);
	} else if (place->start == seen->text) {
		seen->found |= 2;
		assert_null(place->object);
		assert_int_equal(place->err, -EINVAL);
		assert_false(place->anonymous);
	} else if (place->start <= seen->code && seen->code < place->end) {
		seen->found |= 4;
		assert_non_null(place->object);
		assert_string_equal(place->from, "");
		assert_false(place->anonymous);
	}
	return place->start == seen->stop_at ? 77 : 0;
}

static void test_each_code(void **state)
{
	struct fixture *f = *state;
	struct seen seen = {.code = (uintptr_t)&setup};
	char *jit = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[64];
	struct objects *o;
	FILE *file;
	void *text;
	size_t n;

	snprintf(name, sizeof(name), "%s/text", f->dir);
	file = fopen(name, "w+e");
	assert_non_null(file);
	fputs("no object", file);
	fflush(file);
	text = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0);
	fclose(file);
	unlink(name);
	assert_ptr_not_equal(text, MAP_FAILED);
	seen.jit = (uintptr_t)jit;
	seen.text = (uintptr_t)text;
	o = open_process(f, getpid());
	assert_int_equal(objects__each_code(o, see, &seen), 0);
	assert_int_equal(seen.found, 7);
	n = seen.n;
	seen = (struct seen){.stop_at = seen.jit};
	assert_int_equal(objects__each_code(o, see, &seen), 77);
	assert_true(seen.n >= 1 && seen.n <= n);
	munmap(text, 4096);
	munmap(jit, 4096);
	objects__free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_shared_under_two_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vdso_is_shared, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outlives_its_process, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outlives_the_cache, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forget_old, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changed_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_images, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image_at_two_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_code, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
