"""The trials of benchmarks/trials.py in short: a declared reward against ideal treatment."""

import importlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def trials(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.trials")


@pytest.mark.parametrize(
    ("name", "rounds", "least"),
    [
        ("prices, declared up to 100 euros", 2000, 0.95),
        ("prices, declared up to 500 euros", 2000, 0.85),
        ("routing in milliseconds", 3000, 0.95),
    ],
)
def test_a_declared_reward_earns_nearly_what_ideal_treatment_does(trials, name, rounds, least):
    trial = trials.TRIALS[name]._replace(rounds=rounds)
    assert trials.outcome(trial, seeds=1).ratio > least


def test_rewards_trained_as_they_come_train_wrong_rates(trials):
    trial = trials.clicks(0.1, 0.4, wait="10min", comes=300.0, rounds=5000)
    runs = {
        how: np.mean([trials.earned(trial, seed, how) for seed in (0, 1)], axis=0)
        for how in ("declared", "as it comes", "ideal")
    }
    mine, naive, (_, uniform, best) = runs["declared"][0], runs["as it comes"][0], runs["ideal"]
    assert mine - uniform > 0.5 * (best - uniform)
    assert naive - uniform < 0.5 * (mine - uniform)


@pytest.mark.parametrize("name", ["clicks of 1 to 5 %", "prices, declared up to 100 euros"])
def test_draws_of_a_world_have_its_means(trials, name):
    trial, rng = trials.TRIALS[name], np.random.default_rng(0)
    context = trial.context(rng)
    for mean, arm in zip(trial.means(context), trial.arms):
        raw = [trial.draw(mean, arm, rng) for _ in range(4000)]
        assert abs(np.mean(raw) - mean) < 4.0 * np.std(raw) / 60.0 + 1e-9
