# SPDX-License-Identifier: Apache-2.0
# libshard.  `make help` lists the targets.  Set on the command line:
#
#   BUILD=build       where everything that is built goes; nothing is written anywhere else
#   PREFIX=/usr/local LIBDIR=$(PREFIX)/lib DESTDIR=   where `install` puts things
#   PYTHONDIR=dir     where `install` puts the Python package, if anywhere
#   CC CFLAGS CPPFLAGS LDFLAGS PKG_CONFIG OBJCOPY     as usual; gcc and clang both build
#   WERROR=0          let warnings pass; they are errors otherwise
#   URING=0|1         leave io_uring out or demand it; found by itself otherwise
#   ARCHIVE=0|1 GIF=0|1 TIFF=0|1 AVIF=0|1   the same for libarchive, giflib, libtiff, libavif
#   DEPS=skip         install nothing: else tests, `demo`, `fuzz`, `wheel` install what is missing
#   T=pattern         run only the tests whose name contains the pattern
#   SITE=build/site   where `site` adds the documents of this version
#   CHECKOUTS=dir     repositories of others, for `gauntlet` and `check-peers-tests`
#   BENCH=pattern     the same for benchmarks
#   V=1               print every command
#
# A new .c file needs no line here: folders are read as they are.

PKG_CONFIG   ?= pkg-config
OBJCOPY      ?= objcopy
has_package   = $(shell $(PKG_CONFIG) --exists $(1) && echo 1 || echo 0)
BUILD        ?= build
# One folder has one spelling, however it is given: the compiler lists headers of build/x.o, and make
# would not find these for $PWD/build/x.o.
override BUILD := $(patsubst $(CURDIR)/%,%,$(abspath $(or $(BUILD),build)))
PREFIX       ?= /usr/local
LIBDIR       ?= $(PREFIX)/lib
CFLAGS       ?= -O2 -g
WERROR       ?= 1
URING        ?= $(if $(wildcard libshard/io/engine_uring.c),$(call has_package,liburing),0)
ARCHIVE      ?= $(call has_package,libarchive)
GIF          ?= $(call has_package,libgif)
TIFF         ?= $(call has_package,libtiff-4)
AVIF         ?= $(call has_package,libavif)
JOBS         ?= $(shell nproc)
FUZZ_SECONDS ?= 60
Q            := $(if $(V),,@)

# include/shard.h is the one place where a version is written.
ver      = $(shell awk '$$2 == "SHARD_VERSION_$(1)" {print $$3}' include/shard.h)
MAJOR   := $(call ver,MAJOR)
MINOR   := $(call ver,MINOR)
VERSION := $(MAJOR).$(MINOR).$(call ver,PATCH)
# What programs that were linked with the shared library look for.  Before 1.0 a minor release may
# break the ABI, so its number is part of the name.
SONAME  := libshard.so.$(MAJOR)$(if $(filter 0,$(MAJOR)),.$(MINOR))

# ---- what we use: packages by their pkg-config names ----

PKG_LIB       := liblz4 $(if $(filter 1,$(URING)),liburing)
PKG_shardpack := libjpeg libpng libwebp libwebpdemux jansson zlib libzstd $(if $(filter 1,$(ARCHIVE)),libarchive) \
                 $(if $(filter 1,$(GIF)),libgif) $(if $(filter 1,$(TIFF)),libtiff-4) \
                 $(if $(filter 1,$(AVIF)),libavif)
PKG_shardcat  := libpng
PKG_bench     := libxxhash# the library itself is compiled from its header
PKG_ALL       := $(sort $(PKG_LIB) $(PKG_bench) $(PKG_shardpack) $(PKG_shardcat))
pkg_libs       = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)

WARN  := -Wall -Wextra -Wshadow -Wundef -Wvla -Wstrict-prototypes -Wmissing-prototypes \
         $(if $(filter 1,$(WERROR)),-Werror)
FLAGS := -std=c11 -pthread -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections \
         -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Iinclude -I. $(WARN) \
         $(shell $(PKG_CONFIG) --cflags $(PKG_ALL) 2>/dev/null) $(CPPFLAGS) $(CFLAGS)
LIBS  := $(call pkg_libs,$(PKG_LIB)) -ldl
PROG_LIBS = $(LIBS) -lm# programs may compute; the library does not

# A file that needs flags of its own is in one of these lists.  FLAGS_<path> is added after all
# other flags.  Each operation is rounded by itself in UNFUSED files, so that results equal those of
# Pillow, torchvision and every other machine: the compiler may not fuse a multiply with an add.
UNFUSED   := tools/shardpack/images/resize.c tools/shardpack/images/boxes.c \
             libshard/transform/draw.c libshard/transform/transform_plan.c libshard/transform/taps.c \
             libshard/transform/transform_beside.c libshard/dataset/select.c \
             $(wildcard tests/cuda/t_transform*.c tests/ptx/t_ptx_device.c)
NO_ERRNO  := libshard/transform/draw.c libshard/transform/transform_plan.c# a square root is one instruction
UNROLLED  := tools/shardpack/images/resize.c tools/shardpack/images/resize_avx2.c
is_there   = $(if $(wildcard $(1)),,$(error Makefile: there is no $(1) to give $(2) to))
add_flags  = $(foreach f,$(1),$(call is_there,$f,$(2))$(eval FLAGS_$f += $(2)))
$(call add_flags,$(UNFUSED),-ffp-contract=off)
$(call add_flags,$(NO_ERRNO),-fno-math-errno)
$(call add_flags,$(UNROLLED),-O3)
# What shardpack does without a library.  A build leaves the file that needs it out, and the table
# that names its functions is told, and has none.
without   = $(if $(filter 1,$($(1))),,$(2))
$(call add_flags,tools/shardpack/images/formats.c tools/shardpack/input/unpack.c, \
       $(foreach l,ARCHIVE GIF TIFF AVIF,$(call without,$l,-DWITHOUT_$l)))

# ---- what there is ----

# An optional part of the library is a file or its stub with the same functions, never an #ifdef.
either = $(wildcard libshard/$(1)$(if $(filter 1,$(2)),,_stub).c)
SRC   := $(filter-out libshard/io/engine_uring%,$(sort $(wildcard libshard/*/*.c libshard/*/*/*.c))) \
         $(call either,io/engine_uring,$(URING))
OBJ   := $(SRC:%.c=$(BUILD)/%.o)
A     := $(BUILD)/libshard.a
SO    := $(BUILD)/libshard.so.$(VERSION)

comma    := ,
objects   = $(patsubst %.c,$(BUILD)/%.o,$(sort $(wildcard $(1))))
programs  = $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard $(1))))
LEFT_OUT  := $(call without,ARCHIVE,tools/shardpack/input/unpack_archive.c) \
             $(call without,GIF,tools/shardpack/images/decode_gif.c) \
             $(call without,TIFF,tools/shardpack/images/decode_tiff.c) \
             $(call without,AVIF,tools/shardpack/images/decode_avif.c)
tool_objs = $(filter-out $(LEFT_OUT:%.c=$(BUILD)/%.o), \
            $(call objects,$(addprefix tools/,$(1)/*.c $(1)/*/*.c common/*.c))) \
            $(BUILD)/tools/$(1)/manual.o
# Small things of the library that tools share though they are not public: all of its base but for
# what is public itself, or says errors by it.  Nobody installs this archive.
BASE     := $(BUILD)/base.a
SHARED   := $(filter $(BUILD)/libshard/base/% %/io/proc.o, \
            $(filter-out %/base/error.o %/base/options.o,$(OBJ)))
TOOLS    := $(patsubst tools/%/main.c,$(BUILD)/bin/%,$(wildcard tools/*/main.c))
MANUALS  := $(TOOLS:$(BUILD)/bin/%=$(BUILD)/tools/%/manual.c)
EXAMPLES := $(call programs,examples/*.c)
BENCHES  := $(call programs,bench/*.c)
TESTS    := $(call programs,tests/*/t_*.c)
HELPERS  := $(call programs,tests/*/dump_*.c tests/*/prog_*.c)
FUZZERS  := $(call programs,tests/fuzz/fuzz_*.c)
REPLAY   ?= $(call objects,tests/fuzz/replay.c)
# A driver without a GPU, which is libcuda.so.1 for tests/cuda.  The same objects export what
# drivers of three ages did.
FAKES    := $(patsubst tests/cuda/fake_%.map,$(BUILD)/tests/cuda/%/libcuda.so.1, \
            $(wildcard tests/cuda/fake_*.map))
# Scripts are tests unless they are a runner, a library of functions, or meant to be run by hand.
scripts   = $(foreach s,$(sort $(wildcard $(1))), \
            $(if $(filter run.sh fresh.sh lib% _%,$(notdir $s)),,$s))
DOCS     := $(call scripts,tests/docs/*.sh)
SCRIPTS  := $(filter-out $(DOCS),$(call scripts,tests/*/*.sh))
CLIENTS  := $(call scripts,tests/python/clients/*.sh)
# A sanitizer runs programs, and the scripts that tests/SANITIZED names; T=pattern chooses among all.
# It leaves out what it cannot run or change: the sources, the plain build, stacks that a test
# switches by itself, memory and figures, what a kill leaves behind, and controls of other tests.
OMIT_asan := tree/% format/%.sh fault/no_memory.sh fault/steal.sh fault/%_kill.sh pack/claims_simulation.sh \
             cuda/bench.sh cuda/header.sh cuda/ptx.sh cuda/t_%_broken ptx/t_ptx_device python/hints.sh
# The thread sanitizer cannot look into an interpreter that was built without it, and it finds
# nothing in code of one thread.  t_again has the threads of other loaders, and takes a minute.
OMIT_tsan := $(OMIT_asan) python/% twin/% format/% fuzz/% ptx/% unit/t_order pack/t_decode% pack/t_plan \
             pack/t_resize fault/t_syscalls load/t_again
OMITTED   := $(OMIT_$(VARIANT))
TESTS     := $(filter-out $(OMITTED:%=$(BUILD)/tests/%),$(TESTS))
FUZZERS   := $(filter-out $(OMITTED:%=$(BUILD)/tests/%),$(FUZZERS))
ifneq ($(VARIANT),)
SCRIPTS   := $(filter-out $(OMITTED:%=tests/%),$(if $(T),$(SCRIPTS), \
             $(shell awk -F ': ' '/^[^\#]/ && index($$2, "$(VARIANT)") {print "tests/" $$1}' tests/SANITIZED)))
endif
# The package libshard as pip installs it, for its tests.
PY_OBJ   := $(call objects,python/core/*.c python/core/*/*.c)
PY       := $(BUILD)/python/libshard/_core.abi3.so $(patsubst python/%,$(BUILD)/python/%, \
            $(wildcard python/libshard/*.py* python/libshard/py.typed))
# What bench/ compares it with, in the same process.
PY_LOOP  := $(BUILD)/bench/python/loop.so
# Virtual environments with libshard as anybody installs it, and with the packages that use it.
VENV       := $(BUILD)/venv
VENV_torch := torch==2.13.0 numpy==2.4.6 mypy==2.4.1 pillow==13.0.0 nbclient==0.11.0 ipykernel==7.4.0 \
              basedpyright==1.40.2 pandas==3.1.1 polars==2.1.0 pyarrow==26.0.1 datasets==5.2.0 h5py==3.16.0 \
              zarr==3.1.6
PILLOWS    := 12.1.1 12.2.0 13.0.0
$(foreach v,$(PILLOWS),$(eval VENV_pillow-$v := pillow==$v numpy==2.4.6))
VENV_pillow-newest := pillow numpy
VENV_frameworks := torch==2.13.0 numpy==2.4.6 lightning==2.6.6 transformers==5.24.0 accelerate==1.15.0 \
                   torchdata==0.11.0 grain==0.2.18 jax==0.10.2 jaxlib==0.10.2 tyro==1.0.17 \
                   --no-deps torchtitan==0.3.0# which asks for more than its data loaders use
# One version of each, because what they write is looked at, and any warning of theirs ends the build.
# MkDocs 1 and Material get fixes until May 2027; zensical 0.1.1 made the same pages of our mkdocs.yml.
VENV_site := mkdocs==1.6.1 mkdocs-material==9.8.2 pymdown-extensions==13.1.2 markdown==3.11.3 pygments==2.21.0 \
             mkdocs-autorefs==1.4.5 mkdocstrings==1.0.8 mkdocstrings-python==2.0.11 griffelib==2.4.1 ruff==0.17.6
VENV_wheel := ziglang==0.17.1 setuptools==84.2.1 meson==1.12.1 ninja==1.13.2
VENV_audit := auditwheel==6.8.2 abi3audit==0.0.26 twine==7.0.0 check-wheel-contents==0.6.3
VENV_cluster := ray==2.60.0 distributed==2026.8.0 submitit==1.5.4
VENV_formats := numpy==2.4.6 pyarrow==26.0.1 pandas==3.1.1 webdataset==1.0.2 av==18.1.0 pillow==13.0.0
# The torchvision that comes with it may be for another build of PyTorch; convert_writers.py does without.
VENV_convert := torch==2.13.0 numpy==2.1.3 tfrecord==1.14.6 lmdb==3.0.0 litdata==0.2.76 \
             mosaicml-streaming==0.13.0
# These need another version of huggingface_hub than the packages above.
VENV_sources := numpy==2.4.6 pillow==13.0.0 pyarrow==26.0.1 datasets==5.2.0 h5py==3.16.0 zarr==3.1.6 webdataset==1.0.2
VENV_jax   := jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 pillow==13.0.0
# Other loaders, in the versions that tests/gauntlet and tests/peers_tests have results of.
VENV_peers := torch==2.13.0 numpy==2.4.6 accelerate==1.15.0 datasets==5.2.0 torchdata==0.11.0 grain==0.2.18 \
              tyro==1.0.17 tokenizers==0.23.3 spmd_types==0.2.3 pytest==9.2.0 parameterized==0.9.0 expecttest==0.3.0
# The converter's parts, for tests/pack and for the bare loop that bench/ compares it with.
PACK      := $(BUILD)/tools/shardpack.a
PACK_USER := tests/pack/% tests/fuzz/fuzz_pack_% bench/bound_pack bench/resize
PACK_USER := $(filter $(PACK_USER:%=$(BUILD)/%),$(TESTS) $(HELPERS) $(FUZZERS) $(BENCHES))

.DELETE_ON_ERROR:
.SECONDEXPANSION:
.PHONY: all tests check check-run check-python check-python-run check-clients check-gpu check-frameworks \
        check-convert check-order check-readers check-ptx check-pillow check-newest check-pillows-run pillows \
        check-docs check-steal check-late check-cgroup2 simulate battery long-run gauntlet check-peers-tests check-cluster cluster-run \
        asan tsan fuzz fuzz-run format lint demo bench bench-gpu bench-train bench-peers site wheel wheel-run wheel-parts commands check-wheel install uninstall deps clean help FORCE

all: $(A) $(SO) $(TOOLS) $(EXAMPLES) $(BENCHES) $(if $(PYTHONDIR),$(PY)) ## library, tools, examples and benchmarks

# ---- compiling and linking ----

# A stamp is a file BUILD/<name> that holds the text <name>_says.  It is out of date only if it
# holds another text, so what depends on it is made again when the text changes.  Make reads stamps
# before it starts; only recipes write them.
flags_says   := $(CC) $(FLAGS) $(LDFLAGS) $(BUILD) \
                $(foreach v,$(sort $(filter FLAGS_%,$(.VARIABLES))),$v $($v))
objects_says := $(OBJ:$(BUILD)/%=%)
parts        := $(sort $(foreach t,$(TOOLS),$(call tool_objs,$(notdir $t))) $(SHARED) $(PY_OBJ) \
                $(call objects,bench/common/*.c bench/python/*.c tests/cuda/fake_*.c \
                tests/ptx/ptx_*.c))
parts_says   := $(parts:$(BUILD)/%=%)
same  = $(and $(findstring x$(1)x,x$(2)x),$(findstring x$(2)x,x$(1)x))
held  = $(subst $(newline),,$(file <$(BUILD)/$(1)))# make 4.3 does not always take the last one away
stale = $(if $(call same,$(call held,$(1)),$($(1)_says)),,FORCE)
define newline


endef
write = @mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$($(@F)_says))' >$@
missing := $(shell $(PKG_CONFIG) --exists --print-errors $(PKG_ALL) 2>&1)

$(BUILD)/flags: $(if $(missing),FORCE,$(call stale,flags))
	@$(PKG_CONFIG) --exists --print-errors $(PKG_ALL) || \
		{ echo "a library is missing: 'make deps' installs it" >&2; exit 1; }
	$(write)
$(BUILD)/objects: $(call stale,objects)
	$(write)
$(BUILD)/parts: $(call stale,parts)
	$(write)

define compile
	@mkdir -p $(@D); echo '  CC    $<'
	$(Q)$(CC) $(FLAGS) $(FLAGS_$<) -MMD -MP -c $< -o $@
endef
$(BUILD)/%.o: %.c $(BUILD)/flags
	$(compile)
# The assembler reads these, so the compiler does not list them among the headers.
$(BUILD)/libshard/gpu/kernels.o: $(wildcard libshard/gpu/*.ptx)
$(BUILD)/tools/shardpack/cmd_demo.o: $(wildcard examples/photos/*/*/*.jpg)
# The text of a tool's manual and --help.
$(MANUALS): $(BUILD)/tools/%/manual.c: docs/man/%.md docs/manual.awk
	@mkdir -p $(@D); echo '  AWK   $<'
	$(Q)awk -f docs/manual.awk $< >$@
$(MANUALS:.c=.o): %.o: %.c $(BUILD)/flags
	$(compile)
-include $(patsubst %.o,%.d,$(OBJ) $(parts) $(REPLAY) \
	$(addsuffix .o,$(EXAMPLES) $(BENCHES) $(TESTS) $(HELPERS) $(FUZZERS)))

# Objects first, then archives in any order, then libraries: so a linker looks for names.
link = @mkdir -p $(@D); echo '  LD    $@'; $(if $(V),set -x; ) \
	$(CC) -pthread $(CFLAGS) $(LDFLAGS) $(1) -o $@ \
	$(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group

# The archive holds the library's objects, so that a program links only those that it uses.  Between
# objects of an archive hidden names stay visible: a prefix keeps them apart from a program's own.
HIDDEN = awk '/GLOBAL/ && $$6 == "HIDDEN" && $$7 != "UND" {print $$8, "shard__" $$8}'
$(A): $(OBJ) $(BUILD)/objects
	@echo '  AR    $@'
	$(Q)rm -rf $@ $@.d && mkdir $@.d && readelf -sW $(OBJ) | $(HIDDEN) >$@.d/names
	$(Q)set -e; for o in $(OBJ); do $(OBJCOPY) --redefine-syms=$@.d/names $$o $@.d/$${o##*/}; done
	$(Q)$(AR) rcs $@ $@.d/*.o && rm -rf $@.d

SO_FLAGS := -shared -Wl,-z,defs -Wl,-soname,$(SONAME) \
            -Wl,--version-script=libshard/libshard.map
$(SO): $(OBJ) $(BUILD)/objects libshard/libshard.map
	$(call link,$(SO_FLAGS)) $(LIBS)
	$(Q)cd $(@D) && ln -sf $(@F) $(SONAME) && ln -sf $(SONAME) libshard.so

$(BASE): $(SHARED) $(BUILD)/parts
	$(Q)rm -f $@; $(AR) qcs $@ $(filter %.o,$^)

# The doctor of shardcat asks the system as loaders do, by functions that are not public.  So this
# tool is linked with the library's objects; LAYERS keeps its other rooms from them.  Tools read files of
# strangers, so each run has other addresses, also where the compiler does not see to that itself.
library_of = $(if $(filter shardcat,$(1)),$(OBJ) $(BUILD)/objects,$(A) $(BASE))
$(TOOLS): $(BUILD)/bin/%: $$(call tool_objs,$$*) $$(call library_of,$$*) $(BUILD)/parts
	$(call link,-pie) $(PROG_LIBS) $(call pkg_libs,$(PKG_$*))

$(EXAMPLES): %: %.o $(A)
	$(call link) $(PROG_LIBS)
$(BENCHES): %: %.o $(call objects,bench/common/*.c) $(A) $(BASE) $(BUILD)/parts
	$(call link) $(PROG_LIBS) $(call pkg_libs,$(PKG_bench))

# Tests link the objects, so they may call what is internal; tools, examples and benchmarks cannot.
# A test says what else it needs in a comment, on a line `LDFLAGS: ...` or `LDLIBS: ...`.
said = $$(sed -n 's,\*/.*,,; s,^[ /*]*$(1): *,,p' $(@:$(BUILD)/%=%.c))
$(TESTS) $(HELPERS) $(FUZZERS): %: %.o $(OBJ) $(BUILD)/objects
	$(call link,$(call said,LDFLAGS) $(FUZZ_LINK)) $(PROG_LIBS) $(call said,LDLIBS)
$(FUZZERS): $(REPLAY)
FAKE_FLAGS = -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=$<
$(FAKES): $(call objects,tests/cuda/fake_*.c) $(BUILD)/parts
$(FAKES): $(BUILD)/tests/cuda/%/libcuda.so.1: tests/cuda/fake_%.map
	$(call link,$(FAKE_FLAGS))
$(filter $(BUILD)/tests/cuda/% $(BUILD)/tests/ptx/%,$(TESTS) $(HELPERS)): | $(FAKES)
# The interpreter of PTX, for the tests that run kernels on it.
$(filter $(BUILD)/tests/ptx/%,$(TESTS)): $(call objects,tests/ptx/ptx_*.c) $(BUILD)/parts
$(PACK): $(filter-out %/main.o %/manual.o,$(call tool_objs,shardpack)) $(BUILD)/parts
	$(Q)mkdir -p $(@D); rm -f $@; $(AR) qcs $@ $(filter %.o,$^)
$(PACK_USER): $(PACK)
$(BUILD)/tests/pack/t_verbs $(BUILD)/tests/pack/t_jobs: $(BUILD)/tools/shardpack/manual.o
DOCTOR_USER := $(BUILD)/tests/cuda/t_doctor $(BUILD)/tests/cuda/prog_open
$(filter $(TESTS) $(HELPERS),$(DOCTOR_USER)): $(call objects,tools/shardcat/doctor/*.c tools/common/human.c) $(BUILD)/parts
$(PACK_USER): private LIBS += $(call pkg_libs,$(PKG_shardpack))

# The stable ABI: headers of any CPython from 3.11 on will do.
$(PY_OBJ): private FLAGS += $(shell $(PKG_CONFIG) --cflags python3 2>/dev/null)
$(BUILD)/python/libshard/_core.abi3.so: $(PY_OBJ) $(OBJ) $(BUILD)/objects $(BUILD)/parts \
		python/core/exports.map
	$(call link,-shared -Wl$(comma)--version-script=python/core/exports.map) $(LIBS) -lm
$(PY_LOOP): $(call objects,bench/python/*.c) $(A) $(BUILD)/parts
	$(call link,-shared) $(LIBS)
$(BUILD)/python/libshard/%: python/libshard/%
	@mkdir -p $(@D); cp $< $@

# ---- testing ----

# The packages are looked up again by a new make, because a fresh machine gets them only now.
jobs      = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(JOBS))
again     = +$(Q)$(MAKE) --no-print-directory $(jobs) DEPS=skip
install_missing = $(Q)$(if $(filter skip,$(DEPS)),:,tools/deps.sh $(1))

deps: ## install what is missing to build and to test; DEPS=build, cluster, ci, fuzz or wheel for other groups
	$(Q)tools/deps.sh $(if $(filter build cluster ci fuzz wheel,$(DEPS)),$(DEPS),check)

tests: $(TESTS) $(HELPERS) $(FUZZERS) $(FAKES) $(PY) ## build the test programs without running them

check: ## what every change must hold; T=pattern for some of it
	$(call install_missing,check)
	$(again) check-run
# A program that T chooses is built with what it needs.  A script may use anything that is built, so
# all is built for it.
name_of   = $(patsubst tests/%,%,$(1:$(BUILD)/%=%))
named     = $(if $(T),$(foreach t,$(1),$(if $(findstring $(T),$(call name_of,$t)),$t)),$(1))
CHOSEN   := $(call named,$(TESTS) $(FUZZERS) $(SCRIPTS))
# Tests wait for the disk a third of the time, so one more than JOBS keeps that many CPUs busy.
run_tests = BUILD=$(abspath $(BUILD)) JOBS=$$(($(JOBS) > 1 ? $(JOBS) + 1 : 1)) T='$(T)' VARIANT=$(VARIANT) \
            tests/run.sh $(1)
check-run: $(if $(filter %.sh,$(CHOSEN)),all tests,$(CHOSEN))
	$(Q)$(call run_tests,$(TESTS) $(FUZZERS) $(SCRIPTS))

# Long tests, and tests that draw at random, have targets of their own, named for what they check.
# .ci/run gives each 4 minutes.  $(call long,TESTS) runs all that they can do, with a new seed
# unless SEED says one.
long = $(again) long-run LONG='$(1)' NAME=$@
long-run: all tests
	$(Q)export ALL_N=1 SEED=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "seed $$SEED: 'make $(NAME) SEED=$$SEED' draws the same"; \
	$(call run_tests,$(LONG))
check-order: ## orders of every length, and drawn ones against Python; SEED=n draws the same again
	$(call long,$(BUILD)/tests/unit/t_order tests/twin/order.sh)
check-readers: ## drawn good and bad files, read by C and by Python; SEED=n draws the same again
	$(call long,tests/twin/readers.sh)
check-ptx: ## the kernels' PTX, interpreted, against C, and with planted faults; SEED=n as above
	$(call long,$(addprefix $(BUILD)/tests/ptx/,t_ptx_kernels t_ptx_check t_ptx_device))
check-pillow: $(PILLOWS:%=$(VENV)/pillow-%/packages) ## drawn images against Pillows
	+$(Q)PILLOWS='$(PILLOWS)' $(MAKE) --no-print-directory check-pillows-run
pillows: ## the versions that check-pillow compares with
	@echo $(PILLOWS)
check-newest: ## by hand: drawn images against the Pillow that pip offers today
	$(Q)rm -rf $(VENV)/pillow-newest
	+$(Q)$(MAKE) --no-print-directory $(VENV)/pillow-newest/packages
	+$(Q)$(MAKE) --no-print-directory PILLOWS=newest check-pillows-run
check-pillows-run:
	$(call long,tests/twin/_pillows.sh)

# Three workers beside each other make what these scripts make by one command elsewhere.
STEALING := $(filter-out %/pack_claims.sh,$(wildcard tests/fault/pack_*.sh))
check-steal: ## by hand: the fault tests of packing, with workers that claim shards; SEED=n as above
	$(again) long-run STEAL=3 LONG='$(STEALING) tests/fault/steal.sh tests/fault/pack_claims.sh' NAME=$@

# No verdict may depend on how busy the machine is.
check-late: all tests $(BUILD)/late.so ## by hand: the tests with threads and files that come late; T=pattern
	$(Q)export LATE=$(abspath $(BUILD)/late.so); $(call run_tests,$(TESTS) $(SCRIPTS))
check-cgroup2: all tests ## by hand: limits of memory in control groups of version 2; needs Debian's user-mode-linux
	$(Q)$(call run_tests,tests/cuda/_cgroup2.sh)
$(BUILD)/late.so: tests/fault/late.c $(BUILD)/flags
	$(Q)$(CC) -std=gnu11 -O2 -D_GNU_SOURCE -I. $(WARN) -shared -fPIC -o $@ $< -ldl

simulate: ## by hand: 1,000 workers claim 100,000 shards, in simulated time; SEED=n as above
	$(call long,tests/pack/claims_simulation.sh)

battery: ## by hand: statistics of the order, which is frozen, and of orders that are known to be bad
	$(call long,tests/order/_battery.sh)

check-docs: ## every block of sh, c and python in the documents
	$(call long,$(DOCS))

check-python: ## the Python package with PyTorch, in a virtual environment of its own
	$(call install_missing,check)
	$(again) check-python-run
check-python-run: all $(BUILD)/tests/twin/dump_transform $(VENV)/torch/libshard
	$(Q)$(call run_tests,$(CLIENTS))
check-clients: all $(VENV)/jax/libshard $(VENV)/formats/libshard ## by hand: with JAX, pyarrow, webdataset, PyAV
	$(Q)$(call run_tests,$(wildcard tests/python/clients/_jax*.sh tests/python/clients/_formats.sh))
check-gpu: tests ## by hand: every byte on a GPU; PYTHON=one with PyTorch with CUDA, CuPy, JAX, Accelerate
	$(Q)$(call run_tests,$(BUILD)/tests/cuda/t_real tests/python/clients/_gpu.sh)
peers = $(Q)env -u PYTHONPATH GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1 $(VENV)/peers/bin/python $(1) \
        $(if $(CHECKOUTS),--checkouts $(abspath $(CHECKOUTS))) --only '$(T)'
gauntlet: $(VENV)/peers/libshard ## by hand: resumes that go wrong elsewhere, and with libshard; CHECKOUTS=dir
	$(call peers,tests/gauntlet/gauntlet.py)
check-peers-tests: $(VENV)/peers/libshard ## by hand: tests of other loaders, against libshard; CHECKOUTS=dir
	$(call peers,tests/peers_tests/suites.py)
check-frameworks: all $(VENV)/frameworks/libshard ## by hand: what each framework does, and docs/FRAMEWORKS.md
	$(Q)$(call run_tests,$(wildcard tests/frameworks/_*.sh))
	$(Q)cat $(BUILD)/frameworks
check-convert: all $(VENV)/convert/packages $(VENV)/sources/packages ## by hand: libshard.convert, with files of each format's own writer
	$(Q)$(call run_tests,$(wildcard tests/python/clients/_convert.sh))
check-cluster: ## by hand: packing by Slurm, Open MPI, ssh, Ray, ... on this machine, with kills; T=pattern, SEED=n
	$(call install_missing,cluster)
	$(again) cluster-run
ON_PYTHON := $(strip $(call named,$(patsubst %,tests/cluster/_%.sh,ray dask submitit)))
cluster-run: all $(if $(ON_PYTHON),$(VENV)/cluster/libshard)
	$(Q)BUILD=$(abspath $(BUILD)) T='$(T)' tests/cluster/run.sh
# The file holds the list of what was installed.
.PRECIOUS: $(VENV)/%/packages
$(VENV)/%/packages: tests/python/clients/_venv.sh $$(if $$(call same,$$(call held,venv/$$*/packages),$$(VENV_$$*)),,FORCE)
	$(Q)$< $(@D) packages $(VENV_$*)
$(VENV)/%/libshard: $(VENV)/%/packages \
		$(shell find python libshard include format/shard_format.h -type f)
	$(Q)tests/python/clients/_venv.sh $(@D) libshard

SANITIZE := -O1 -g1 -fno-omit-frame-pointer -fno-sanitize-recover=all
# Of instrumented code gcc warns without need; the plain build keeps these warnings.
GCC_SANITIZE := $(SANITIZE) -Wno-maybe-uninitialized -Wno-format-truncation
asan: ## programs and some scripts under the address and undefined-behaviour sanitizers; T=/ for all scripts
	$(call install_missing,check)
	$(again) check-run VARIANT=asan CC=gcc BUILD=$(BUILD)/asan \
		CFLAGS='$(GCC_SANITIZE) -fsanitize=address,undefined'
tsan: ## the same under the thread sanitizer
	$(call install_missing,check)
	$(again) check-run VARIANT=tsan CC=gcc BUILD=$(BUILD)/tsan \
		CFLAGS='$(GCC_SANITIZE) -fsanitize=thread'

fuzz: ## libFuzzer on every target in turn (needs clang); FUZZ_SECONDS=60, T=pattern
	$(call install_missing,fuzz)
	$(again) fuzz-run CC=clang BUILD=$(BUILD)/fuzz REPLAY= FUZZ_LINK=-fsanitize=fuzzer \
		CFLAGS='$(SANITIZE) -fsanitize=address,undefined,fuzzer-no-link'
fuzz-run: $(FUZZERS)
	$(Q)BUILD=$(abspath $(BUILD)) T='$(T)' tests/fuzz/run.sh $(FUZZ_SECONDS) $(FUZZERS)

format: ## format all C code with clang-format 14, as tests/tree/format.sh demands
	$(Q)git ls-files '*.c' '*.h' '*.cu' | xargs clang-format -i
lint: ## clang-tidy, cppcheck and shellcheck, each where it is installed
	$(Q)tests/lint.sh $(FLAGS)

# ---- using ----

demo: ## from photographs to a trained classifier, with the commands to copy
	$(call install_missing,build)
	$(again) all
	$(Q)examples/demo.sh $(BUILD)

bench: all $(PY) $(PY_LOOP) ## one JSON line per measurement; BENCH=pattern for some of them
	$(Q)BUILD=$(abspath $(BUILD)) BENCH='$(BENCH)' bench/run.sh
# The runtime API is linked statically: what is built here runs wherever a driver is.
NVCC ?= nvcc
$(BUILD)/bench/gpu: $(sort $(wildcard bench/gpu*.cu)) bench/gpu_job.h \
		$(call objects,bench/common/*.c) $(A) $(BUILD)/flags $(BUILD)/parts
	@mkdir -p $(@D); echo '  NVCC  $@'
	$(Q)$(NVCC) -std=c++17 -O3 -arch=sm_75 -Iinclude -I. -Xcompiler -pthread -o $@ \
		$(filter %.cu %.o %.a,$^) $(PROG_LIBS) $(call pkg_libs,$(PKG_bench))
# What is wrong is not measured: a GPU first has to give the bytes that the CPU gives.
bench-gpu: $(BUILD)/bench/gpu $(BUILD)/tests/cuda/t_real ## the same on a GPU (needs nvcc), kept in bench/results
	$(Q)dir=$$(mktemp -d) && TMPDIR=$$dir $(BUILD)/tests/cuda/t_real; rc=$$?; rm -rf $$dir; exit $$rc
	$(Q)BUILD=$(abspath $(BUILD)) BENCH='$(BENCH)' bench/gpu.sh

# Anyone without a GPU or PyTorch is told so before anything is built.
TRAIN_PYTHON = $${PYTHON:-python3} bench/gpu_train.py $(TRAIN)
bench-train: ## ResNets trained on a GPU by libshard and by DataLoader; PYTHON=one with PyTorch, TRAIN='--runs 1'
	$(Q)$(TRAIN_PYTHON) --check
	$(again) all $(PY) >&2
	$(Q)BUILD=$(abspath $(BUILD)) PYTHONPATH=$(abspath $(BUILD))/python $(TRAIN_PYTHON)

bench-peers: ## other loaders beside the Python package; PEERS='--only lmdb,hf --records 4096'
	$(Q)$(call run_tests,tests/python/_peers.sh)
	$(Q)python3 bench/peers/run.py $(BUILD)/peers $(PEERS)

# Man pages and completions are printed by the tools, from the table that also prints --help; the
# header is its own page.
NAMES   := $(notdir $(TOOLS))
HEADERS := $(notdir $(wildcard include/*.h))
PAGES := $(foreach t,$(NAMES),man/man1/$t.1 bash-completion/completions/$t zsh/site-functions/_$t \
         fish/vendor_completions.d/$t.fish) $(HEADERS:%=man/man3/%.3)
page   = @mkdir -p $(@D); $(RUN) $< $(1) >$@
$(BUILD)/share/man/man1/%.1: $(BUILD)/bin/% ; $(call page,--print-man)
$(BUILD)/share/man/man3/%.3: include/% docs/header_man.awk
	@mkdir -p $(@D); awk -v version=$(VERSION) -f docs/header_man.awk $< >$@
$(BUILD)/share/bash-completion/completions/%: $(BUILD)/bin/% ; $(call page,--print-completion bash)
$(BUILD)/share/zsh/site-functions/_%: $(BUILD)/bin/% ; $(call page,--print-completion zsh)
$(BUILD)/share/fish/vendor_completions.d/%.fish: $(BUILD)/bin/% ; $(call page,--print-completion fish)

# Each version has a folder of its own in SITE, and versions.json lists the ones that are there.
SITE ?= $(BUILD)/site
site: $(PAGES:%=$(BUILD)/share/%) $(PY) $(VENV)/site/packages ## documents, manuals and reference as a web site; SITE=dir
	$(Q)$(VENV)/site/bin/python docs/site/make_site.py $(BUILD) $(SITE)

INSTALLED := $(NAMES:%=$(PREFIX)/bin/%) $(HEADERS:%=$(PREFIX)/include/%) $(PAGES:%=$(PREFIX)/share/%) \
             $(PREFIX)/share/libshard/libshard.tsan \
             $(addprefix $(LIBDIR)/,$(notdir $(A) $(SO)) $(SONAME) libshard.so pkgconfig/libshard.pc)
ifneq ($(PYTHONDIR),)
# By METADATA Python knows which version of the package is installed.
METADATA  := $(PYTHONDIR)/libshard-$(VERSION).dist-info/METADATA
INSTALLED += $(PY:$(BUILD)/python/%=$(PYTHONDIR)/%) $(METADATA)
endif

install: $(A) $(SO) $(TOOLS) $(if $(PYTHONDIR),$(PY)) $(PAGES:%=$(BUILD)/share/%) ## into DESTDIR and PREFIX
	install -d $(addprefix $(DESTDIR),$(sort $(dir $(INSTALLED))))
	install -m755 $(TOOLS) $(DESTDIR)$(PREFIX)/bin
	install -m644 $(HEADERS:%=include/%) $(DESTDIR)$(PREFIX)/include
	install -m644 $(A) $(SO) $(DESTDIR)$(LIBDIR)
	cp -P $(BUILD)/$(SONAME) $(BUILD)/libshard.so $(DESTDIR)$(LIBDIR)
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' libshard/libshard.pc.in | \
		sed 's|@REQUIRES@|$(strip $(PKG_LIB))|' >$(DESTDIR)$(LIBDIR)/pkgconfig/libshard.pc
	chmod 644 $(DESTDIR)$(LIBDIR)/pkgconfig/libshard.pc
	$(Q)set -e; for p in $(PAGES); do \
		install -m644 $(BUILD)/share/$$p $(DESTDIR)$(PREFIX)/share/$$p; done
	install -m644 docs/libshard.tsan $(DESTDIR)$(PREFIX)/share/libshard
ifneq ($(PYTHONDIR),)
	install -m644 $(PY) $(DESTDIR)$(PYTHONDIR)/libshard
	awk -F '"' 'BEGIN {print "Metadata-Version: 2.1\nVersion: $(VERSION)"} /^name = / {print "Name: " $$2} \
		/^description = / {print "Summary: " $$2} /^license = / {print "License: " $$2} \
		/^requires-python = / {print "Requires-Python: " $$2}' python/pyproject.toml >$(DESTDIR)$(METADATA)
	chmod 644 $(DESTDIR)$(METADATA)
endif

# A wheel that runs on any Linux with glibc 2.28 and Python 3.11, or newer.  What it is made of is in
# python/wheel/libraries.py; WHEEL_SOURCES=dir keeps their tarballs for later.  Two builds of one
# commit give the same bytes: paths of this machine are not in it, and its date is the commit's.
# ARCH=aarch64 needs binutils for it, and RUN=qemu-aarch64 to print the manuals.
ARCH        ?= x86_64
WHEEL       := $(BUILD)/wheel/$(ARCH)
WHEEL_PY     = $(abspath $(VENV)/wheel/bin/python)
WHEEL_FLAGS := -O2 -g0 -ffp-contract=off -fno-sanitize=undefined -ffile-prefix-map=$(CURDIR)=. \
               -include $(CURDIR)/python/wheel/libc_calls.h
wheel: ## a wheel with both commands and all libraries inside; WHEEL_SOURCES=dir, ARCH=aarch64
	$(call install_missing,wheel)
	$(again) wheel-run
wheel-run: $(VENV)/wheel/packages
	$(Q)JOBS=$(JOBS) $(WHEEL_PY) python/wheel/libraries.py $(ARCH) $(WHEEL)
	+$(Q)PKG_CONFIG_LIBDIR=$(abspath $(WHEEL))/prefix/lib/pkgconfig $(MAKE) --no-print-directory $(jobs) wheel-parts \
		DEPS=skip BUILD=$(WHEEL)/build CC=$(abspath $(WHEEL))/bin/cc AR='$(abspath $(WHEEL))/bin/ar' \
		PKG_CONFIG='pkg-config --static' WERROR=0 CFLAGS='$(WHEEL_FLAGS)' LDFLAGS='-s -Wl,--gc-sections' \
		OBJCOPY=$(if $(filter $(shell uname -m),$(ARCH)),objcopy,$(ARCH)-linux-gnu-objcopy) RUN='$(RUN)' \
		CPPFLAGS="$$($(WHEEL_PY) python/wheel/libraries.py python-headers)"
	$(Q)$(WHEEL_PY) python/wheel/wheel.py $(ARCH) $(WHEEL) $(BUILD)/wheel
check-wheel: all ## the wheel, built if it has to be, without a compiler; BARE=dir of a system, or a virtual environment
	$(call install_missing,wheel)
	$(Q)ARCH='$(ARCH)' BARE='$(BARE)' $(call run_tests,tests/python/_wheel.sh)
wheel-parts: commands $(PY)
# What pip installs besides the package, from an sdist too, which has no tests, examples or benchmarks.
commands: $(TOOLS) $(patsubst %,$(BUILD)/share/%,$(filter-out man/man3/%,$(PAGES)))

uninstall: ## remove exactly what install wrote
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))

# In a copy, because dpkg-buildpackage writes beside its sources.  Two builds of the same files give
# the same bytes, since every date in a package is that of debian/changelog.
DEB := $(BUILD)/deb/libshard-$(VERSION)
.PHONY: deb check-deb
deb: ## by hand: Debian packages in BUILD/deb, as docs/PYTHON.md shows
	$(Q)rm -rf $(BUILD)/deb; mkdir -p $(DEB); git ls-files -z >$(BUILD)/deb/files
	$(Q)tar --null --ignore-failed-read -T $(BUILD)/deb/files -cf - | tar -xf - -C $(DEB); rm $(BUILD)/deb/files
	$(Q)cd $(DEB) && env -u MAKEFLAGS -u MFLAGS -u BUILD dpkg-buildpackage -us -uc -b -j$(JOBS)
	$(Q)rm -r $(DEB); ls $(BUILD)/deb
check-deb: ## by hand: the packages of `make deb`, installed by apt in another system; BARE=its folder
	$(Q)debian/check.sh $(BUILD)/deb $(BARE)

clean: ## remove BUILD
	rm -rf $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-17s %s\n", $$1, $$2}' Makefile
