# bpf-pmp: build, test, install. `make help` lists the targets.
PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR  ?= $(PREFIX)/bin
DOCDIR  ?= $(PREFIX)/share/doc/bpf-pmp

CC      ?= cc
CXX     ?= c++
CLANG   ?= clang
BPFTOOL ?= bpftool
PKG_CONFIG ?= pkg-config

B       := build
VERSION := $(shell cat VERSION)

ifeq ($(V),1)
Q   :=
say := @:
else
Q   := @
say := @printf '  %-8s %s\n'
endif

OPT      ?= -O2 -g
WARN     := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
            -Wpointer-arith -Wvla -Wformat=2 -Wundef -Wno-unused-parameter
HARDEN   := -fPIE -fstack-protector-strong -fstack-clash-protection -fcf-protection \
            -D_FORTIFY_SOURCE=2
CPPFLAGS += -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DPMP_VERSION='"$(VERSION)"' \
            -DPCRE2_CODE_UNIT_WIDTH=8 -Isrc -I. -I$(B)/skel
CFLAGS   += -std=gnu11 $(OPT) $(WARN)
LDFLAGS  += -pie -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--as-needed
LIBS     := -lbpf -ldw -lelf -llzma -lzstd -lz -lisal -liberty -lpcre2-8 -lpthread

# sources: everything but what wires it is the library that program, tests and fuzzers share
LIB_SRC  := $(sort $(wildcard src/*/*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$(B)/obj/%.o)
MAIN_SRC := src/main.c src/pipeline.c
MAIN_OBJ := $(MAIN_SRC:%.c=$(B)/obj/%.o)
BPF_SRC  := $(sort $(wildcard bpf/*.bpf.c))
SKELS    := $(BPF_SRC:bpf/%.bpf.c=$(B)/skel/%.skel.h)

all: $(B)/bpf-pmp compile_commands.json $(B)/includes.ok ## build the program

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

$(B)/bpf-pmp: $(MAIN_OBJ) $(B)/libpmp.a
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(HARDEN) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/libpmp.a: $(LIB_OBJ)
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

# the direction of the includes is part of the design: it is checked at every build
$(B)/includes.ok: scripts/check-includes.sh $(LIB_SRC) $(MAIN_SRC) $(wildcard src/*/*.h)
	$(say) INCLUDES $@
	$(Q)scripts/check-includes.sh && touch $@

# a changed version or flag rebuilds what depends on it
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(HARDEN)' | cmp -s - $@ || \
		echo '$(CC) $(CPPFLAGS) $(CFLAGS) $(HARDEN)' > $@

$(B)/obj/%.o: %.c $(B)/flags | $(SKELS)
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(HARDEN) -MMD -MP -c -o $@ $<

# clang -target bpf does not look into the multiarch folder that holds asm/types.h
UAPI     := /usr/include/$(shell $(CC) -print-multiarch)

# BPF: CO-RE objects and their skeletons; the build reads no kernel's BTF
$(B)/bpf/%.bpf.o: bpf/%.bpf.c $(B)/flags
	@mkdir -p $(@D)
	$(say) BPF $<
	$(Q)$(CLANG) -target bpf -D__TARGET_ARCH_x86 -mcpu=v3 -O2 -g -Wall -Wextra -Werror \
		-Wno-unused-parameter -Ibpf -idirafter $(UAPI) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@ $<
	$(Q)llvm-strip -g $@ 2>/dev/null || true

$(B)/skel/%.skel.h: $(B)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp && mv $@.tmp $@

-include $(shell find $(B) -type f -name '*.d' 2>/dev/null)

comma   := ,
# for clangd and clang-tidy: one entry a source file, with the flags above
json    = $(subst ",\",$(subst \,\\,$(1)))
entry   = {"directory": "$(CURDIR)", "file": "$(1)", "command": "$(call json,$(CC) $(CPPFLAGS) $(CFLAGS) $(HARDEN) -c $(1))"}
compile_commands.json: $(B)/flags $(LIB_SRC) $(MAIN_SRC) Makefile
	$(say) JSON $@
	$(file >$@,[)
	$(foreach f,$(LIB_SRC) src/pipeline.c,$(file >>$@,$(call entry,$(f))$(comma)))
	$(file >>$@,$(call entry,src/main.c)])

install: $(B)/bpf-pmp ## install the program and its documentation
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(DOCDIR)
	install -m 755 $(B)/bpf-pmp $(DESTDIR)$(BINDIR)/bpf-pmp
	install -m 644 README.md NEWS LICENSE $(DESTDIR)$(DOCDIR)

uninstall: ## remove what install installed
	rm -f $(DESTDIR)$(BINDIR)/bpf-pmp
	! grep -qs bpf-pmp $(DESTDIR)$(BINDIR)/pt-pmp || rm -f $(DESTDIR)$(BINDIR)/pt-pmp
	rm -f $(addprefix $(DESTDIR)$(DOCDIR)/,README.md NEWS LICENSE)
	rmdir $(DESTDIR)$(DOCDIR) 2>/dev/null || true

install-pt-pmp: install ## install compat/pt-pmp as pt-pmp besides, in place of percona-toolkit's
	install -m 755 compat/pt-pmp $(DESTDIR)$(BINDIR)/pt-pmp

demo: all ## profile a server of this machine, or a bundled one
	scripts/demo.sh

clean: ## remove everything that was built
	rm -rf $(B) compile_commands.json

.PHONY: all help install install-pt-pmp uninstall demo clean FORCE
FORCE:
.DELETE_ON_ERROR:
.SECONDARY:

include tests/tests.mk
