# Every target's comment is its help text; make help prints them.
GO ?= go
STATIC = CGO_ENABLED=0
# The Debian packages with what tests start that are not here.
MISSING = $$(command -v redis-server >/dev/null || echo redis-server; \
	ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || echo faketime; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || echo postgresql; \
	PATH=$$PATH:/usr/sbin command -v pgbouncer >/dev/null || echo pgbouncer; \
	PATH=$$PATH:/usr/sbin command -v mariadbd >/dev/null || echo mariadb-server-core; \
	command -v my_print_defaults >/dev/null || echo mariadb-client-core; \
	ls /usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server >/dev/null 2>&1 || echo rabbitmq-server; \
	command -v promtool >/dev/null || echo prometheus; \
	command -v beanstalkd >/dev/null || echo beanstalkd; \
	command -v python3 >/dev/null || echo python3; \
	command -v mypy >/dev/null || echo mypy; \
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || echo chromium; \
	command -v npm >/dev/null || { command -v node >/dev/null || echo nodejs; echo npm; })

# Tests whose dependencies would burden every program that uses tarry, and staticcheck, are in a module of their own.
# So is what makes a release. $(call each,COMMAND) runs a command in the first two modules, $(call all,COMMAND) in all
# three; they fail if it fails in one.
in = failed=; for m in $1; do (cd $$m && $2) || failed=1; done; [ -z "$$failed" ]
each = $(call in,. internal/testdeps,$1)
all = $(call in,. internal/testdeps release,$1)

# How long the tests of a package may take.
TESTTIME ?= 20m

# Calls the shell's function run, then prints the times of the packages that it tested, the slowest first. It fails if run does.
timed = tab=$$(printf '\t'); log=$$(mktemp) || exit 1; trap 'rm -f $$log $$log.passed' EXIT; trap 'exit 1' INT TERM; \
	{ run && touch $$log.passed; } | tee $$log; \
	echo "the slowest packages first:"; grep -E "^(ok|FAIL).*$$tab[0-9.]+s" $$log | sort -t "$$tab" -k 3,3rn; \
	[ -e $$log.passed ]

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show what can be made.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the static binary ./tarry.
	$(STATIC) $(GO) build -trimpath -o tarry ./cmd/tarry

.PHONY: servers
servers: ## Install the servers and the browser that the tests start, Node and faketime, where apt-get and root can; no service is left running.
	@set -e; set -- $(MISSING); [ $$# -gt 0 ] || exit 0; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "not installed: $$*; tests that need it are skipped (on Debian and Ubuntu, make servers as root installs it)"; exit 0; \
	fi; \
	policy=/usr/sbin/policy-rc.d; cluster=/etc/postgresql-common/createcluster.d/tarry.conf; ours=; \
	trap 'rm -f $$ours' EXIT INT TERM; \
	if [ ! -e $$policy ]; then \
		ours=$$policy; printf '#!/bin/sh\nexit 101\n' >$$policy; chmod +x $$policy; \
	fi; \
	case "$$*" in *postgresql*) \
		ours="$$ours $$cluster"; mkdir -p $${cluster%/*}; echo 'create_main_cluster = false' >$$cluster;; \
	esac; \
	command -v epmd >/dev/null || epmd="epmd.socket epmd"; \
	apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$$@"; \
	for s in "$$@" $$epmd; do \
		systemctl -q disable $$s 2>/dev/null || true; \
	done

%/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error

# What builds the dashboard, for the tests; without it, or where no registry answers, they skip, aloud.
.PHONY: ui-packages
ui-packages: servers
	@timeout 180 $(MAKE) --no-print-directory ui/web/node_modules/.package-lock.json || echo "npm ci failed: tests that need what it installs are skipped"

# The clients of beanstalkd's protocol for Node, for the tests; without them, or where no registry answers, they skip, aloud.
CLIENTS = server/beanstalk/testdata/clients
.PHONY: beanstalk-clients
beanstalk-clients: servers
	@timeout 180 $(MAKE) --no-print-directory $(CLIENTS)/node_modules/.package-lock.json || echo "npm ci failed: tests of clients of beanstalkd are skipped"

# What compiles our client for Node, likewise.
.PHONY: client-packages
client-packages: servers
	@timeout 180 $(MAKE) --no-print-directory clients/node/node_modules/.package-lock.json || echo "npm ci failed: tests of the client for Node are skipped"

.PHONY: ui
ui: ui/web/node_modules/.package-lock.json ## Build the dashboard's pages into ui/dist from ui/web (Node 20, npm).
	cd ui/web && node node_modules/typescript/bin/tsc --noEmit && node build.js ../dist

.PHONY: test
test: servers ui-packages beanstalk-clients client-packages ## Run all tests.
	@[ -n "$(MISSING)" ] || export TARRY_TEST_SERVERS=require; \
	[ ! -e ui/web/node_modules/.package-lock.json ] || export TARRY_TEST_UI=require; \
	[ ! -e $(CLIENTS)/node_modules/.package-lock.json ] || export TARRY_TEST_BEANSTALK_CLIENTS=require; \
	[ ! -e clients/node/node_modules/.package-lock.json ] || export TARRY_TEST_CLIENTS=require; \
	run() { $(call each,$(GO) test $(TESTFLAGS) -timeout $(TESTTIME) ./...); }; $(timed)

# What has concurrency of its own, the slowest first, and what tests one engine that processes share.
# The race detector makes them ten times slower: with -short they play fewer random histories than make test.
RACES = ./engine/diskengine $(addprefix ./engine/diskengine/internal/,sstable wal memtable) ./engine/httpengine ./engine/memengine ./server/... . ./timer $$($(GO) list ./internal/... | grep -v /internal/cli) ./forward ./intake ./trend ./tarryprom ./tarrytest/...
SHARED_RACES = -run '^TestSuite$$/^(Race|RaceLimits|Cut)$$' ./engine/pgengine

.PHONY: test-race
test-race: servers ## Run the tests of what has concurrency of its own with the race detector (a C compiler).
	@[ -n "$(MISSING)" ] || export TARRY_TEST_SERVERS=require; \
	export CGO_ENABLED=1; races="$(GO) test -race -short -timeout $(TESTTIME)"; \
	run() { $$races $(RACES) && $$races $(SHARED_RACES); }; $(timed)

.PHONY: test-thorough
test-thorough: ## Run all tests with the race detector and with what make test leaves out for its time: whole suites of each variant, four times the histories.
	CGO_ENABLED=1 TARRY_TEST_THOROUGH=1 $(MAKE) test TESTTIME=2h TESTFLAGS=-race

# Newer servers than Debian 12 has: a suite of Debian, its packages, and the packages of ours that are tested with them.
LATEST ?= $${TMPDIR:-/tmp}/tarry-latest
SQL_TESTS = ./engine/pgengine ./engine/mysqlengine
BROKER_TESTS = ./engine/rabbitengine ./forward/amqp ./intake/amqp
latest = .ci/unpack $$dir/$1 $2 && TARRY_TEST_ROOT=$$dir/$1 TARRY_TEST_SERVERS=require $(GO) test -p 1 -count=1 -timeout 40m $3

.PHONY: test-latest
test-latest: ## Run the engines' tests on newer servers, which are unpacked from Debian's newer suites and not installed (root; LATEST=DIR).
	@dir=$$(mkdir -p "$(LATEST)" && cd "$(LATEST)" && pwd) || exit 1; trap 'umount $$dir/*/proc 2>/dev/null || true' EXIT; failed=; \
	$(call latest,sid,sid mysql-server-core postgresql-18 pgbouncer redis-server rabbitmq-server,$(SQL_TESTS) ./engine/redisengine $(BROKER_TESTS)) || failed=1; \
	$(call latest,valkey,sid valkey-server,./engine/redisengine) || failed=1; \
	$(call latest,trixie,trixie mariadb-server-core mariadb-client-core postgresql-17 pgbouncer valkey-server rabbitmq-server,$(SQL_TESTS) ./engine/redisengine $(BROKER_TESTS)) || failed=1; \
	[ -z "$$failed" ]

.PHONY: release
release: ## Build a release of the last commit into dist: binaries, packages, an image (VERSION=v1.2.3, else its tag; PLATFORMS="linux/amd64 …").
	release/build dist

# The Debian packages with what takes a release apart.
CHECKERS = $$(command -v mmdebstrap >/dev/null || echo mmdebstrap; command -v rpm >/dev/null || echo rpm; \
	ls /usr/share/keyrings/debian-archive-keyring.gpg >/dev/null 2>&1 || echo debian-archive-keyring)

.PHONY: release-check
release-check: ## Build a release twice (or once, with DIST=dist VERSION=v1.2.3) and take it apart; as root on Debian install, upgrade and remove its packages (PLATFORMS).
	@[ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || set -- $(CHECKERS); [ $$# = 0 ] || { apt-get update -qq; \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$$@"; }
	@[ -n "$(CHECKERS)" ] || [ "$$(id -u)" != 0 ] || export TARRY_TEST_SERVERS=require; \
	cd release && $(if $(DIST),DIST='$(abspath $(DIST))') $(GO) test -count=1 -v -timeout 1h .

.PHONY: publish
publish: ## Publish what make release has built of a tag, on the forge (gh, with a token that may write).
	gh release create "$${VERSION:-$$(git describe --tags --exact-match --match 'v*')}" --verify-tag --notes 'CHANGELOG.md says what is new.' dist/*

.PHONY: simulate
simulate: ## Simulate crashes, losses of power, faults and many callers under the disk engine, with the seed of each history (FOR=20m, three times; TARRY_TEST_SEED=N plays one again).
	TARRY_SIMULATE=$${FOR:-20m} $(GO) test -count=1 -timeout 0 -v -run '^Test(Simulation|PowerLoss|Throng)$$' ./engine/diskengine

.PHONY: twin
twin: ## Play random scripts on beanstalkd and on ours at once (FOR=20m; TARRY_TEST_BEANSTALK=disk; TARRY_TEST_BEANSTALKD=PATH of a newer one).
	TARRY_TWIN=$${FOR:-20m} $(GO) test -count=1 -timeout 0 -v -run '^TestTwin$$' ./server/beanstalk

.PHONY: check
check: ## Check format, vet, static analysis, module files and the documents made from code.
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "gofmt would change:"; echo "$$out"; exit 1; fi
	for os in darwin freebsd openbsd windows; do GOOS=$$os $(GO) list ./... >/dev/null || exit 1; done
	$(call all,$(GO) vet ./...)
	tool=$$(cd internal/testdeps && $(GO) tool -n staticcheck) && $(call all,$$tool ./...)
	$(call all,$(GO) mod verify)
	$(call all,$(GO) mod tidy -diff)
	@dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT; echo "$(GO) build -ldflags=-dumpdep ./cmd/tarry"; \
	$(STATIC) $(GO) build -trimpath -ldflags='-s -w -dumpdep' -o $$dir/tarry ./cmd/tarry 2>$$dir/deps || { grep -v -e '->' $$dir/deps; exit 1; }; \
	! grep -m1 '<ReflectMethod>' $$dir/deps || { echo "this uses reflect.Method: the linker keeps every method then, and the binary grows by half"; exit 1; }
	$(GO) test -run 'TestHouse|TestSemantics' .

.PHONY: tidy
tidy: ## Tidy the module files after a change of dependencies.
	$(call all,$(GO) mod tidy)

.PHONY: client
client: client-packages ## Make the types of the clients from the server's openapi.json, and test the clients (Node 18, npm, Python 3.10).
	TARRY_TEST_CLIENTS=require $(GO) test -count=1 ./clients -update

.PHONY: fuzz
fuzz: ## Fuzz every decoder for a few seconds each (FUZZTIME=10s).
	@$(call each,for pkg in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep ^Fuzz); do \
			echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $${FUZZTIME:-10s} -fuzzminimizetime 1x $$pkg || exit 1; \
		done; \
	done)

# The peers that are libraries for Node; without them, or where no registry answers, the others are measured.
.PHONY: bench-packages
bench-packages: servers
	@timeout 180 $(MAKE) --no-print-directory bench/node/node_modules/.package-lock.json || echo "npm ci failed: BullMQ and graphile-worker are not measured"

.PHONY: bench-page
bench-page: bench-packages ## Measure all engines and their peers in turns, into docs/performance.md, in about 50 minutes (QUICK=1: 10; SYSTEMS=disk,redis,asynq PARTS=calls,late,burst,pending,growth or none; TURNS=1 GROW=100000000; RESUME=1 after an interrupt).
	cd bench && export TMPDIR=$$(mktemp -d) && chmod 755 $$TMPDIR && trap 'rm -rf $$TMPDIR' EXIT && trap 'exit 1' INT TERM && \
	$(GO) run ./page $(if $(QUICK),-quick -results page-quick.jsonl) $(if $(RESUME),-resume) -systems '$(SYSTEMS)' -parts '$(PARTS)' \
	  -turns $(or $(TURNS),0) -grow-to $(or $(GROW),0)

.PHONY: bench-timers
bench-timers: ## Measure the timers beside those of Go and go-zero, into docs/timers.md (PENDING=10000000).
	{ $(GO) test -run '^$$' -bench . -benchmem -timeout 30m ./timer -pending $${PENDING:-10000000} && \
	  cd bench && $(GO) test -run '^$$' -bench . -benchmem -timeout 30m ./timers -pending $${PENDING:-10000000} && echo whole: yes; } \
	| tee /dev/stderr | (cd bench && $(GO) run ./timers/table ../docs/timers.md)

.PHONY: bench-redis
bench-redis: ## Measure the Redis engine beside asynq, on a private redis-server, into docs/engines/redis.md (PENDING=1000000).
	cd bench && { redis-server --version | sed 's/.* v=\([^ ]*\).*/redis-server: \1/' && \
	  $(GO) test -run '^$$' -bench '^Benchmark(Push|PushBatch|Cancel)$$' -benchtime 100000x -timeout 30m ./redis && \
	  $(GO) test -run '^$$' -bench '^Benchmark(CancelDepth|Lateness|Burst|Idle)$$' -benchtime 1x -timeout 60m ./redis -pending $${PENDING:-1000000} && echo whole: yes; } \
	| tee /dev/stderr | $(GO) run ./redis/table ../docs/engines/redis.md

.PHONY: bench-sql
bench-sql: ## Measure the PostgreSQL engine beside River, on a private server, into docs/engines/sql.md (PENDING=1000000 BURST=100000 PUSHES=25000 SPAN=20s ROUNDS=3).
	cd bench && export TARRY_TEST_SERVERS=require TMPDIR=$$(mktemp -d) && chmod 755 $$TMPDIR && trap 'rm -rf $$TMPDIR' EXIT && trap 'exit 1' INT TERM && \
	sizes="-pending $${PENDING:-1000000} -burst $${BURST:-100000} -span $${SPAN:-20s} -rounds $${ROUNDS:-3}" && \
	{ $(GO) test -run '^$$' -bench 'Push(Batch)?$$' -benchtime $${PUSHES:-25000}x -timeout 30m ./sql $$sizes && \
	  $(GO) test -run '^$$' -bench '(Lateness|Burst|Depth)$$' -benchtime 1x -timeout 60m ./sql $$sizes && echo whole: yes; } \
	| tee /dev/stderr | $(GO) run ./sql/table ../docs/engines/sql.md

.PHONY: bench-rabbit
bench-rabbit: ## Measure the RabbitMQ engine beside plain TTLs, on a private broker, into docs/engines/rabbitmq.md (PUSHES=10000 SPAN=8s).
	cd bench && export TARRY_TEST_SERVERS=require && \
	{ $(GO) test -run '^$$' -bench 'Push$$' -benchtime $${PUSHES:-10000}x -timeout 10m ./rabbit && \
	  $(GO) test -run '^$$' -bench '(Burst|Lateness)$$' -benchtime 1x -timeout 10m ./rabbit -span $${SPAN:-8s} && echo whole: yes; } \
	| tee /dev/stderr | $(GO) run ./rabbit/table ../docs/engines/rabbitmq.md

.PHONY: bench-beanstalk
bench-beanstalk: ## Measure tarry beanstalkd beside Debian's beanstalkd, into docs/beanstalkd.md (TURNS=5 PUTS=300000 PIPELINED=800000 PAIRS=300000 BURST=100000 PENDING=10000000).
	cd bench && export TMPDIR=$$(mktemp -d) && trap 'rm -rf $$TMPDIR' EXIT && trap 'exit 1' INT TERM && \
	{ echo "beside: $$(beanstalkd -v)" && \
	  $(GO) test -run '^$$' -bench . -benchtime 1x -timeout 3h ./beanstalk -turns $${TURNS:-5} -puts $${PUTS:-300000} -pipelined $${PIPELINED:-800000} \
	    -pairs $${PAIRS:-300000} -burst $${BURST:-100000} -pending $${PENDING:-10000000} && echo whole: yes; } \
	| tee /dev/stderr | $(GO) run ./beanstalk/table ../docs/beanstalkd.md

.PHONY: bench-cost
bench-cost: ## Measure what metrics and traces cost a server over HTTP and a program with the library (ROUNDS=60).
	cd bench && export TMPDIR=$$(mktemp -d) && trap 'rm -rf $$TMPDIR' EXIT && trap 'exit 1' INT TERM && \
	{ $(GO) test -run '^$$' -bench '^BenchmarkCost$$' -benchtime 1x -timeout 60m ./cost -rounds $${ROUNDS:-60}; } \
	| tee /dev/stderr | $(GO) run ./cost/table

.PHONY: bench-http
bench-http: ## Measure what a raw HTTP request costs the server beside net/http that waits as long (REQUESTS=40000 TURNS=7).
	cd bench && $(GO) test -run '^$$' -bench '^BenchmarkRaw$$' -benchtime 1x -timeout 30m ./rawhttp -requests $${REQUESTS:-40000} -turns $${TURNS:-7}

.PHONY: bench-viewers
bench-viewers: ## Measure what 200 who watch the dashboard cost those who push (VIEWERS=200 PUSHES=5000 TURNS=8).
	cd bench && export TMPDIR=$$(mktemp -d) && trap 'rm -rf $$TMPDIR' EXIT && trap 'exit 1' INT TERM && \
	{ $(GO) test -run '^$$' -bench '^BenchmarkViewers$$' -benchtime 1x -timeout 60m ./cost -viewers $${VIEWERS:-200} -pushes $${PUSHES:-5000} -turns $${TURNS:-8}; } \
	| tee /dev/stderr | $(GO) run ./cost/table

# How much make bench-disk measures: $(call size,NAME,by default,with QUICK=1).
size = $(or $($1),$(if $(QUICK),$3,$2))
DISK_SIZES = -turns $(call size,TURNS,3,1) -pushes $(call size,PUSHES,200000,20000) -million $(call size,MILLION,1000000,100000) -large-bytes $(call size,LARGEBYTES,1000000000,50000000) \
	-sustained $(call size,SUSTAINED,20000000,400000) -chunk $(call size,CHUNK,1000000,100000) -pending $(call size,PENDING,10000000,200000) \
	-burst $(call size,BURST,100000,20000) -late-for $(call size,LATEFOR,10s,2s)

.PHONY: bench-disk
bench-disk: ## Measure the disk engine beside a bare log, into docs/performance.md (QUICK=1; TURNS PUSHES MILLION LARGEBYTES SUSTAINED CHUNK PENDING BURST LATEFOR; STORE='disk:DIR?memory=256MiB').
	cd bench && export TMPDIR=$$(mktemp -d) && trap 'rm -rf $$TMPDIR' EXIT && trap 'exit 1' INT TERM && \
	{ echo "sizes: $(DISK_SIZES)" && \
	  $(GO) test -run '^$$' -bench '^Benchmark(Push|Batch|Bodies|Sustained|Cancel|Burst|Churn|Lateness|Deep|Backlog)$$' -benchtime 1x -timeout 3h ./disk \
	    -url '$(or $(STORE),disk:DIR)' $(DISK_SIZES) && echo whole: yes; } \
	| tee /dev/stderr | $(GO) run ./disk/table ../docs/performance.md

.PHONY: bench-disk-behind
bench-disk-behind: ## Measure the disk engine beside a bare log behind the same client (QUICK=1; TURNS PUSHES MILLION).
	cd bench && export TMPDIR=$$(mktemp -d) && trap 'rm -rf $$TMPDIR' EXIT && trap 'exit 1' INT TERM && \
	{ echo "sizes: $(BEHIND_SIZES)" && \
	  $(GO) test -run '^$$' -bench '^BenchmarkBehind$$' -benchtime 1x -timeout 1h ./disk $(BEHIND_SIZES); } \
	| tee /dev/stderr | $(GO) run ./disk/table -behind

BEHIND_SIZES = -turns $(call size,TURNS,5,1) -pushes $(call size,PUSHES,200000,20000) -million $(call size,MILLION,1000000,100000)

.PHONY: bench-disk-huge
bench-disk-huge: ## Measure the disk engine with 100 million messages beside a million (N=100000000 BODY=200 KEYS=order TURNS=3 PUSHES=200000; DIR=… keeps the store for the next time; STORE='disk:DIR?memory=256MiB').
	cd bench $(if $(DIR),&& mkdir -p '$(abspath $(DIR))') && export TMPDIR=$$(mktemp -d $(if $(DIR),-p '$(abspath $(DIR))')) && trap 'rm -rf $$TMPDIR' EXIT && trap 'exit 1' INT TERM && \
	{ echo "sizes: $(HUGE_SIZES)" && \
	  $(GO) test -run '^$$' -bench '^BenchmarkHuge$$' -benchtime 1x -timeout 6h ./disk \
	    -url '$(or $(STORE),disk:DIR)' $(HUGE_SIZES) -huge-dir '$(abspath $(DIR))'; } \
	| tee /dev/stderr | $(GO) run ./disk/table -huge

HUGE_SIZES = -huge $(or $(N),100000000) -body $(or $(BODY),200) -keys $(or $(KEYS),order) -turns $(or $(TURNS),3) -pushes $(or $(PUSHES),200000)

.PHONY: bench-bloat
bench-bloat: ## See that databases stay fast after many messages (BLOAT=5000000 MYSQL_BLOAT=1000000), and beside an old snapshot (SNAPSHOT=10m).
	$(GO) test -run '^TestBloat$$' -v -timeout 3h ./engine/pgengine -bloat $${BLOAT:-5000000} -snapshot $${SNAPSHOT:-10m}
	$(GO) test -run '^TestBloat$$' -v -timeout 3h ./engine/mysqlengine -bloat $${MYSQL_BLOAT:-1000000} -snapshot $${SNAPSHOT:-10m}

.PHONY: bench
bench: ## Run the Go benchmarks, then tarry bench on the disk engine.
	$(GO) test -run '^$$' -bench . -benchmem ./...
	$(GO) run ./cmd/tarry bench --store disk:$${TMPDIR:-/tmp}/tarry-bench --scenario push,push-batch,cancel,lateness,burst
