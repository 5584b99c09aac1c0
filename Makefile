# Two commands matter: `make lab` opens the course, `make test` proves it.
# `make check` is its quick part, for while you write; `make test-all` leaves nothing out.
# `make` alone lists the rest. Works with GNU make on Linux, macOS and Windows (Git Bash).

ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN := .venv/Scripts
else
PYTHON ?= python3
BIN := .venv/bin
# Where home cannot be written, Jupyter, matplotlib, uv and the rest keep their files in .venv.
ifeq ($(shell test -w "$$HOME" && echo yes),)
export HOME := $(CURDIR)/.venv/home
endif
endif

READY := .venv/installed
# A worker per core, each with one notebook or test file at a time. Eight at most: each loads PyTorch,
# and so does its notebook's kernel, and more would wait for the longest file anyway.
PYTEST := $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist loadfile --no-loadscope-reorder --durations 10
# Every cell is executed, and compared with its saved outputs.
NBVAL := --nbval --nbval-current-env
# JavaScript is checked where npm is: it fetches the one program for that, the first time.
JS := $(if $(shell command -v npm),npm run --silent check --,true)
STYLE := $(BIN)/python -m ruff check && $(BIN)/python -m ruff format --check && $(JS)

# Sums in the same order on every machine, and two workers that don't get in each other's way.
export OMP_NUM_THREADS := 1
# UTF-8 on Windows too.
export PYTHONUTF8 := 1
# Compiled once, not at every start: that is half of the tests' time where containers forbid it.
unexport PYTHONDONTWRITEBYTECODE

# What runs the notebooks to compare or save them must not depend on the answers that a learner
# keeps in notebooks/my_transformer, nor write there.
check test test-all test-notebooks notebooks: export MY_TRANSFORMER := off

.DEFAULT_GOAL := help
.PHONY: help lab check exercise test test-all test-notebooks notebooks measure site serve pictures bench bench-widgets measure-why format links fresh grade ablations seeds translator writer clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

NEED := The course needs Python 3.11 or newer: name one by make lab PYTHON=python3.12
$(READY): pyproject.toml tools/install.py $(wildcard workshop/widgets/jupyterlab/*)
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and '$(NEED)')"
	$(PYTHON) -m venv .venv
	$(BIN)/python tools/install.py
	@touch $@

# JupyterLab runs saved widgets in trusted notebooks only; in others their pictures stand.
lab: $(READY) ## open JupyterLab on notebook 00 (options for it: LAB="--no-browser")
	@$(BIN)/python -m jupyter trust --log-level=ERROR notebooks/[0-9][0-9]_*.ipynb >/dev/null
	$(BIN)/python -m jupyter lab notebooks/00_predict_the_next_word.ipynb --ServerApp.ip=127.0.0.1 $(LAB)

check: $(READY) ## style and the quick tests, in seconds
	$(STYLE)
	$(PYTEST) -p no:nbval -m "not slow and not long" --ignore tests/browser tests

exercise: $(READY) ## try an exercise on its solution, slips and learners' answers: make exercise NAME=softmax
	$(BIN)/python tests/exercise.py $(NAME)
	$(PYTEST) -q tests/test_exercises.py -k "$(NAME)"

test: $(READY) ## style, tests, and every cell of every notebook executed and compared, in minutes
	$(STYLE)
	$(PYTEST) $(NBVAL) -m "not long" tests notebooks

test-all: $(READY) ## the same and what takes long: a browser, hundreds of answers, hostile classes
	$(STYLE)
	$(PYTEST) $(NBVAL) tests notebooks

test-notebooks: $(READY) ## the notebooks alone
	$(PYTEST) $(NBVAL) notebooks

notebooks: links format ## execute all notebooks and write them in canonical form (one: NAME=05)
	$(BIN)/python tools/notebooks.py $(NAME)
	$(BIN)/python tools/minutes.py $(NAME)

measure: $(READY) ## count the minutes of the stories, print them and write them in their places
	$(BIN)/python tools/minutes.py $(NAME)

site: $(READY) ## write the notebooks as web pages into site/: to read, and (with npm, once fetched) to run
	$(BIN)/python tools/live.py
	$(BIN)/python tools/site.py

serve: site ## the same, and show it at http://localhost:8000 (from a folder, pages are only to read)
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site

pictures: $(READY) ## draw the README's pictures from the machine, into .github/
	$(BIN)/python tools/pictures.py

bench: $(READY) ## measure our layers beside PyTorch's, the key-value cache, MiniLM, and memory
	$(BIN)/python tools/bench_layers.py $(WHAT)

bench-widgets: $(READY) ## measure the machine and the heatmap in a browser, beside PyTorch, interact, BertViz
	$(BIN)/python tools/bench_widgets.py

measure-why: $(READY) ## measure how often *why this word* finds the reason, and its links beside hooks
	$(BIN)/python tools/measure_why.py

format: $(READY) ## fix and format code and notebooks
	$(BIN)/python -m ruff check --fix
	$(BIN)/python -m ruff format
	$(JS) --write

links: $(READY) ## write the repository's address into links and setup cells (new: REPO=owner/name)
	$(BIN)/python tools/links.py $(REPO)

KEPT := $${MY_TRANSFORMER:-notebooks/my_transformer}
fresh: ## start the exercises again: put notebooks/my_transformer aside, under a name with the time
	@for end in "" .py .zip; do test ! -e "$(KEPT)$$end" || mv -v "$(KEPT)$$end" "$(KEPT)-$$(date +%F-%H%M%S)$$end"; done
	@echo "The next right answer begins a new my_transformer."

grade: $(READY) ## grade a folder of learners' notebooks: make grade FOLDER=… (options: GRADE="--workers 1")
ifeq ($(FOLDER),)
	@echo "Which folder? make grade FOLDER=path/to/the/notebooks"
else
	$(BIN)/python -m workshop.classroom "$(FOLDER)" $(GRADE)
endif

ablations: $(READY) ## train the translator without each of its stages; writes the table of notebook 13
	$(BIN)/python tools/ablations.py

seeds: $(READY) ## train the model of notebook 16 with ten seeds, and in three other ways; writes its table
	$(BIN)/python tools/seeds.py

translator: $(READY) ## train the small translator of notebook 12, in seconds, and keep it in helpers/
	$(BIN)/python tools/translator.py

writer: $(READY) ## train the model that writes, half an hour, and keep it in helpers/
	$(BIN)/python tools/writer.py

clean: ## remove .venv, site/ and all caches
	rm -rf .venv site .pytest_cache .ruff_cache .hypothesis notebooks/.ipynb_checkpoints
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
