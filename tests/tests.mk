# Tests: unit (cmocka, under ASan + UBSan), cli and live (bats), fuzzers (libFuzzer).
SAN        := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SAN_OBJ    := $(LIB_SRC:%.c=$(B)/san/%.o)
UNIT_SRC   := $(sort $(wildcard tests/unit/test_*.c))
UNIT_BIN   := $(UNIT_SRC:tests/unit/%.c=$(B)/tests/unit/%)
FUZZ_SRC   := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN   := $(FUZZ_SRC:tests/fuzz/%.c=$(B)/tests/fuzz/%)

$(B)/san/%.o: %.c $(B)/flags | $(SKELS)
	@mkdir -p $(@D)
	$(say) CC-SAN $<
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SAN) -MMD -MP -c -o $@ $<

$(B)/libpmp-san.a: $(SAN_OBJ)
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

$(B)/tests/unit/%: tests/unit/%.c $(B)/libpmp-san.a
	@mkdir -p $(@D)
	$(say) UNIT $@
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SAN) -MMD -MP -MF $@.d -o $@ $< $(B)/libpmp-san.a -lcmocka $(LIBS)

# the program itself, under the sanitizers
$(B)/bpf-pmp-san: $(MAIN_SRC:%.c=$(B)/san/%.o) $(B)/libpmp-san.a
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ $(LIBS)

# fuzzers: the modules are compiled again, instrumented, by clang
FUZZ_FLAGS := -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
$(B)/fuzzobj/%.o: %.c $(B)/flags | $(SKELS)
	@mkdir -p $(@D)
	$(say) CC-FUZZ $<
	$(Q)$(CLANG) $(CPPFLAGS) -std=gnu11 -g -O1 -fsanitize=fuzzer-no-link,address,undefined \
		-fno-sanitize-recover=undefined -MMD -MP -c -o $@ $<

$(B)/libpmp-fuzz.a: $(LIB_SRC:%.c=$(B)/fuzzobj/%.o)
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

$(B)/tests/fuzz/%: tests/fuzz/%.c $(B)/libpmp-fuzz.a
	@mkdir -p $(@D)
	$(say) FUZZ $@
	$(Q)$(CLANG) $(CPPFLAGS) -std=gnu11 $(FUZZ_FLAGS) -MMD -MP -MF $@.d -o $@ $< \
		$(B)/libpmp-fuzz.a $(LIBS)

include tests/fixtures/fixtures.mk

check: all unit-tests fixtures tools $(B)/bpf-pmp-san ## run every test
	tests/run.sh unit cli live db kernels

check-unit: unit-tests ## the pure modules, under ASan and UBSan
	tests/run.sh unit

check-cli: all fixtures tools ## options, errors, output files
	tests/run.sh cli

check-live: all fixtures tools $(B)/bpf-pmp-san ## the program against running fixtures (root)
	tests/run.sh live

check-db: all fixtures tools ## the program against MariaDB under sysbench (root)
	tests/run.sh db

check-kernels: all fixtures tools ## the program in other kernels, under qemu: KERNELS="6.1 newest" (root)
	scripts/check-kernels.sh

unit-tests: $(UNIT_BIN)

bench: all fixtures tools ## side by side with pt-pmp and eu-stack (root)
	tests/bench/bench.sh

bench-profile: all fixtures tools ## samplers, side by side with perf and bpftrace (root)
	tests/bench/profile.sh

bench-names: all tools ## names by debug information, side by side with gdb and eu-stack (root)
	tests/bench/names.sh

bench-text: all fixtures tools ## text traces, side by side with pt-pmp
	tests/bench/text.sh

FUZZ_SECONDS ?= 60
fuzz: $(FUZZ_BIN) $(B)/tests/tools/mutate fixtures ## each fuzzer for FUZZ_SECONDS (60)
	tests/fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ_BIN)

lint: all ## format, static checks, shell scripts
	scripts/lint.sh

.PHONY: check check-unit check-cli check-live check-db check-kernels unit-tests tools bench \
	bench-text bench-profile bench-names fuzz lint fixtures

# programs that measure or compare
TOOLS := $(patsubst %.c,$(B)/%,$(sort $(wildcard tests/tools/*.c)))
tools: $(TOOLS)

$(B)/tests/tools/%: tests/tools/%.c $(B)/libpmp.a
	@mkdir -p $(@D)
	$(say) TOOL $@
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(HARDEN) -MMD -MP -MF $@.d -o $@ $< $(B)/libpmp.a $(LIBS)
