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
