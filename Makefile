PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo reproduce test check lint kernels bench bench-walk bench-roads bench-fleet bench-features bench-loop bench-service bench-trials \
  bench-rivals bench-runtime bench-worlds bench-sharp bench-lab bench-peers bench-streams bench-suite bench-referee bench-explain \
  bench-declarations bench-drawn bench-drawn-parts bench-rare bench-budget bench-lockin bench-calendars bench-one-discount bench-guard bench-proof bench-coverage bench-evidence bench-promotion bench-oracles \
  bench-hostile bench-openfeature bench-deciders bench-telemetry bench-keys bench-erasure bench-chain bench-nights mutants torture docs docs-site dist release-check clean

demo: $(VENV)/.lab        ## a simulated shop whose visitors change, with its dashboard
	$(BIN)/driftbandit demo

reproduce: $(VENV)/.lab   ## the paper's comparison at full size
	$(BIN)/driftbandit reproduce

# Kernels are compiled once, beside lint, and not by every worker of pytest at the same time.
test: $(VENV)/.test $(VENV)/.browser   ## lint, types, tests (compiled and interpreted)
	$(MAKE) --jobs 2 lint kernels
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -m "kernel" --override-ini filterwarnings=default tests/core tests/policies tests/theory tests/test_bandit.py tests/test_fleet.py

check: $(VENV)/.test lint   ## lint, types, and the quick tests of what changed since main: under a minute
	$(BIN)/python -m benchmarks.changed

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

kernels: $(VENV)/.test
	$(BIN)/driftbandit warmup

bench: $(VENV)/.test      ## the speed figures, as ratios from one run
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.speed

bench-walk: $(VENV)/.test    ## functions, files and CPU time of a decision, next to version 0.2
	$(BIN)/python -m benchmarks.walk --csv docs/results/walk.csv; found=$$?; \
	  $(BIN)/python -m benchmarks.stages --csv docs/results/walk-stages.csv && exit $$found

bench-chain: $(VENV)/.test    ## what the chain of hashes adds to a decision, and how fast a ledger is verified
	$(BIN)/python -m benchmarks.chain --csv docs/results/chain.csv

bench-keys: $(VENV)/.test     ## a million keys on the disk: memory, start and checkpoints; 9 GB of room is needed
	$(BIN)/python -m benchmarks.keys --csv docs/results/keys.csv

bench-erasure: $(VENV)/.test  ## how long decisions wait while a person's data is erased
	$(BIN)/python -m benchmarks.erasure --csv docs/results/erasure.csv

bench-roads: $(VENV)/.test    ## first use, real dimensions, every kind of call, as ratios from one run
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.roads

bench-fleet: $(VENV)/.test    ## a learner-round in a batch next to C, a million learners
	$(BIN)/python -m benchmarks.fleet

bench-features: $(VENV)/.test   ## raw values to contexts
	$(BIN)/python -m benchmarks.features

bench-loop: $(VENV)/.test     ## decisions a second, each stored on the disk
	$(BIN)/python -m benchmarks.loop --csv docs/results/loop.csv; found=$$?; \
	  $(BIN)/python -m benchmarks.readme && exit $$found

bench-service: $(VENV)/.test  ## the service under load, on loopback
	$(BIN)/python -m benchmarks.service --csv docs/results/service.csv; found=$$?; \
	  $(BIN)/python -m benchmarks.sizing --csv docs/results/sizing.csv; \
	  $(BIN)/python -m benchmarks.readme && exit $$found

bench-openfeature: $(VENV)/.test  ## OFREP next to the native route, on loopback
	$(BIN)/python -m benchmarks.ofrep --csv docs/results/ofrep.csv; found=$$?; \
	  $(BIN)/python -m benchmarks.readme && exit $$found

bench-deciders: $(VENV)/.test  ## 1, 2 and 4 services over one PostgreSQL
	$(BIN)/python -m benchmarks.deciders --csv docs/results/deciders.csv; found=$$?; \
	  $(BIN)/python -m benchmarks.readme && exit $$found

bench-telemetry: $(VENV)/.test  ## what traces cost
	$(BIN)/python -m benchmarks.telemetry --csv docs/results/telemetry.csv && $(BIN)/python -m benchmarks.readme

bench-nights: $(VENV)/.test   ## 100,000 batch decisions and their rewards, as a nightly job
	$(BIN)/python -m benchmarks.nights --store; found=$$?; $(BIN)/python -m benchmarks.readme && exit $$found

bench-hostile: $(VENV)/.test  ## an honest key beside a hostile one, and beside idle connections
	$(BIN)/python -m benchmarks.hostile --csv docs/results/hostile.csv; found=$$?; \
	  $(BIN)/python -m benchmarks.readme && exit $$found

torture: $(VENV)/.test    ## any order of events, kill -9, no database, no room, made-up requests: the long form
	TORTURE=1 $(BIN)/python -m pytest tests/loop/test_torture.py tests/service/test_torture.py \
	  tests/service/test_schema.py tests/service/test_requests.py tests/service/test_fairness.py \
	  tests/loop/test_exploration.py

bench-trials: $(VENV)/.test   ## declared rewards next to the same learner with ideal treatment
	$(BIN)/python -m benchmarks.trials --csv docs/results/trials.csv
	$(BIN)/python -m benchmarks.readme

bench-rivals: $(VENV)/.test   ## what the rivals cost, and how it grows
	$(BIN)/python -m benchmarks.rivals

bench-runtime: $(VENV)/.test  ## the time of a single learner alone on a core, as the paper reports it
	$(BIN)/python -m benchmarks.runtime --csv docs/results/runtime.csv
	$(BIN)/python -m benchmarks.readme

bench-worlds: $(VENV)/.test   ## AutoDOMD in many worlds: runs what is missing, prints the ratios
	for study in many-worlds ablation whole-catalogue; do $(BIN)/driftbandit run $$study || exit 1; done
	$(BIN)/python -m benchmarks.readme results
	$(BIN)/python -m benchmarks.worlds

bench-sharp: $(VENV)/.test    ## the sharper theorem at play, next to the rivals of the paper: runs what is missing
	for study in sharp-lambda sharp-dimension; do $(BIN)/driftbandit run $$study || exit 1; done
	$(BIN)/python -m benchmarks.readme results
	$(BIN)/python -m benchmarks.sharp

bench-lab: $(VENV)/.test  ## the lab at full size: reproduce, resume, a report of 10^7 rows
	$(BIN)/python -m benchmarks.lab

bench-peers: $(VENV)/.test   ## next to what people use today, each in an environment of its own
	$(BIN)/python -m benchmarks.peers
	$(BIN)/python -m benchmarks.readme

bench-streams: $(VENV)/.test   ## real data: everybody tuned on the window before, fills docs/streams.md
	$(BIN)/python -m benchmarks.streams

bench-explain: $(VENV)/.test   ## whether explain tells the truth; needs the data of docs/streams.md
	$(BIN)/python -m benchmarks.explain --store; found=$$?; $(BIN)/python -m benchmarks.readme && exit $$found

bench-budget: $(VENV)/.test   ## prompts routed to language models under a budget; DATA=routing.npz has them
	$(BIN)/python -m benchmarks.budget --data $(DATA) --store; found=$$?; $(BIN)/python -m benchmarks.readme && exit $$found

bench-declarations: $(VENV)/.test   ## natural declarations of everyday jobs against simple baselines
	$(BIN)/python -m benchmarks.declarations --store; found=$$?; $(BIN)/python -m benchmarks.readme && exit $$found

bench-drawn: $(VENV)/.test   ## environments drawn at random: AutoDOMD against the best fixed setting of each
	$(BIN)/python -m benchmarks.drawn --store; found=$$?; $(BIN)/python -m benchmarks.readme && exit $$found

bench-drawn-parts: $(VENV)/.test   ## which part of AutoDOMD costs what in the worst of these environments
	$(BIN)/python -m benchmarks.drawn_parts --store && $(BIN)/python -m benchmarks.readme

bench-rare: $(VENV)/.test   ## rare clicks: AutoDOMD against the best fixed setting of each world
	$(BIN)/python -m benchmarks.rare --store; found=$$?; $(BIN)/python -m benchmarks.readme && exit $$found

bench-lockin: $(VENV)/.test   ## how many long runs stay with a worse arm
	$(BIN)/python -m benchmarks.lockin --store; found=$$?; $(BIN)/python -m benchmarks.readme && exit $$found

bench-one-discount: $(VENV)/.test   ## one gamma for drift and for jumps, and what it costs
	$(BIN)/python -m benchmarks.one_discount --store && $(BIN)/python -m benchmarks.readme

bench-coverage: $(VENV)/.test   ## how often every interval of an evaluation holds, on simulated logs
	$(BIN)/python -m benchmarks.coverage --csv docs/results/intervals.csv --hard-csv docs/results/intervals-hard.csv --health-csv docs/results/intervals-health.csv; found=$$?; \
	  $(BIN)/python -m benchmarks.shrinkage --csv docs/results/shrinkage.csv; \
	  $(BIN)/python -m benchmarks.readme && exit $$found

bench-evidence: $(VENV)/.test   ## time and memory of evaluating 10^6 rows and reading 10^7
	$(BIN)/python -m benchmarks.evidence --csv docs/results/evidence.csv; found=$$?; \
	  $(BIN)/python -m benchmarks.readme && exit $$found

bench-promotion: $(VENV)/.test   ## how often policies are promoted or demoted by chance, and how soon with reason
	$(BIN)/python -m benchmarks.promotion --csv docs/results/promotion.csv; found=$$?; \
	  $(BIN)/python -m benchmarks.promotion --seeds 100 --csv docs/results/promotion-late.csv || found=1; \
	  $(BIN)/python -m benchmarks.promotion --loops 10 --csv docs/results/promotion-lost.csv || found=1; \
	  $(BIN)/python -m benchmarks.readme && exit $$found

bench-oracles: $(VENV)/.test   ## estimators and sequences next to obp and confseq, in their own environments
	$(BIN)/python -m benchmarks.oracles --csv docs/results/oracles.csv; found=$$?; \
	  $(BIN)/python -m benchmarks.readme && exit $$found

bench-calendars: $(VENV)/.test   ## a million rounds: AutoDOMD against the best fixed half-life
	$(BIN)/python -m benchmarks.calendars --store; found=$$?; $(BIN)/python -m benchmarks.readme && exit $$found

bench-suite: $(VENV)/.test   ## suite-2, worlds and real streams, with everybody; needs the data of docs/streams.md
	$(BIN)/driftbandit suite all --suite suite-2
	$(BIN)/python -m benchmarks.readme results

bench-referee: $(VENV)/.test   ## how often the referee errs, and how long a match takes
	$(BIN)/python -m benchmarks.referee --csv docs/results/referee.csv

bench-guard: $(VENV)/.test   ## fails when a speed ratio slips by more than 20 %
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.guard

bench-proof: $(VENV)/.test   ## every inequality of the proofs on a run, as a table and a figure
	$(BIN)/python -m benchmarks.proof

mutants: $(VENV)/.test    ## whether the tests notice every small change to the theory, the policies and the kernels
	$(BIN)/python -m benchmarks.mutants

docs: $(VENV)/.test       ## run what the documents quote and put the numbers into them
	$(BIN)/driftbandit reproduce
	for study in regret-orders coverage sensitivity scaling-in-time unstated-choices \
	  same-tuning-budget scaling-in-dimension many-worlds ablation whole-catalogue late-rewards bob \
	  sharp-lambda sharp-dimension; do \
	  $(BIN)/driftbandit run $$study || exit 1; done
	$(BIN)/driftbandit suite all
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.speed --csv docs/results/bench.csv
	$(BIN)/python -m benchmarks.fleet --csv docs/results/fleet.csv
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.roads --csv docs/results/roads.csv
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.links --csv docs/results/links.csv
	$(BIN)/python -m benchmarks.runtime --csv docs/results/runtime.csv
	$(BIN)/python -m benchmarks.proof
	$(BIN)/python -m benchmarks.examples
	$(BIN)/python -m benchmarks.readme results

docs-site: $(VENV)/.test  ## the documentation as a site, offline; open build/site/index.html
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs build/site

dist: $(VENV)/.test
	$(BIN)/python -m build

release-check: $(VENV)/.test  ## wheel and sdist in fresh environments, oldest and newest dependencies
	$(BIN)/python -m benchmarks.release

clean:
	rm -rf $(VENV) .peers dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.lab: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[evidence,service]'
	@touch $@

$(VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[test]'
	@touch $(VENV)/.lab $@

# The report is tested in a real browser. Without the right to install one the test skips itself.
$(VENV)/.browser: $(VENV)/.test
	@command -v chromedriver >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium chromium-driver; } || \
	  echo "no chromium and no right to install it: the browser test will be skipped"
	@touch $@
