"""Preferences: which of two arms, shown side by side, people say is the better one."""

import asyncio
import json
import math

import numpy as np
import pytest

from driftbandit import (
    DOMD,
    AsyncClient,
    AutoDOMD,
    Bandit,
    Budget,
    Category,
    Client,
    Features,
    Guard,
    InverseGap,
    Item,
    Log,
    Loop,
    Number,
    Preference,
    Recipe,
    Reward,
    Thompson,
)
from serving import ask, in_thread

FEATURES = Features(
    context={"hard": Number(0, 1)}, arm={"model": Category(["small", "middle", "large"])}
)
ARMS = {name: {"model": name} for name in ("small", "middle", "large")}
STRENGTH = {"small": 0.0, "middle": 1.0, "large": 2.0}
NEW = {
    "features": FEATURES,
    "reward": Preference(wait=60),
    "policy": DOMD,
    "arms": ARMS,
    "clock": "events",
    "exploration": 0.2,
    "training": "inline",
}


def opened(path=":memory:", **options):
    return Loop(path, **(NEW | options))


def answer(rng, pair, strength=STRENGTH):
    """The position of the arm that a person prefers, by the model of Bradley and Terry."""
    lead = strength[pair.arms[0]] - strength[pair.arms[1]]
    return 0 if rng.random() < 1.0 / (1.0 + math.exp(-lead)) else 1


def play(loop, n, seed=0, start=0.0, strength=STRENGTH, late=5.0):
    rng, made = np.random.default_rng(seed), []
    for k in range(n):
        at = start + 10.0 * k
        context = {"hard": float(rng.random())}
        made.append(loop.decide(context, k=2, id=f"{start:g} {k}", key=f"user {k % 7}", at=at))
        loop.prefer(made[-1].id, answer(rng, made[-1], strength), at=at + late)
    return made


def trained_by_hand(log, features=FEATURES, policy=DOMD):
    """Train a bandit on x_first - x_second of what the log says was trained."""
    bandit = Bandit(policy(problem=features.problem(Preference())))
    rows = [row for row in log.to_dicts() if row["status"] == "trained"]
    for first, second in zip(rows[::2], rows[1::2]):
        assert (first["id"], first["position"], second["position"]) == (second["id"], 0, 1)
        assert first["reward"] + second["reward"] == 1.0
        context, arms = json.loads(first["context"]), [ARMS[first["arm"]], ARMS[second["arm"]]]
        x, y = features.encode(context, arms)
        bandit.update(x - y, first["reward"])
    return bandit


@pytest.mark.parametrize("policy", [DOMD, AutoDOMD])
def test_the_learner_is_trained_on_differences_of_rows(policy):
    loop = opened(policy=policy)
    play(loop, 60)
    loop.close_windows(1000.0)
    bandit = trained_by_hand(loop.log(), policy=policy)
    assert bandit.rounds == 60
    assert np.allclose(loop.runtime.learner.theta, bandit.theta, rtol=0, atol=1e-12)
    assert np.any(loop.runtime.learner.theta != 0.0)
    why = loop.decide({"hard": 0.3}, at=1000.0).why
    assert why.terms["1"] == why.terms["hard"] == 0.0  # the context's own terms cancel
    loop.close()


def test_a_difference_may_be_twice_as_long_as_a_row():
    """Two rows of opposite signs: the longest difference there is, and the log-odds are right."""
    sign = Features(arm={"sign": Number(-1, 1, curve=False)})
    arms = {"plus": {"sign": 1}, "minus": {"sign": -1}}
    loop = opened(features=sign, arms=arms, reward=Preference())
    assert loop.policy.problem.context_norm == 2 * sign.norm
    rng, strength = np.random.default_rng(1), {"plus": 1.0, "minus": 0.0}
    for k in range(3000):
        pair = loop.decide({}, k=2, at=float(k))
        loop.prefer(pair.id, answer(rng, pair, strength), at=float(k))
    lead = loop.decide({}, at=3000.0).why.lead
    assert 0.85 < lead < 1.15  # log-odds of plus against minus are 1
    known = loop.log().filter(position=0)["mean"].tail(1000)
    assert known.is_between(0.2, 0.8).all()  # 0.73 or 0.27
    loop.close()


@pytest.mark.parametrize("wait", [0, 60])
@pytest.mark.parametrize("rule", [0.2, Thompson(0.1, draws=20), InverseGap()])
def test_replays_restarts_and_audits_give_the_same(tmp_path, rule, wait):
    path, declared = str(tmp_path / "a.db"), {"exploration": rule, "reward": Preference(wait=wait)}
    loop = opened(path, **declared)
    made = play(loop, 40)
    digest, theta = loop.digest, loop.runtime.learner.theta.copy()
    loop.close()
    loop = opened(path, **declared)
    assert loop.digest == digest
    made += play(loop, 20, seed=1, start=1000.0)
    audits = [*loop.audits()]
    assert [each.id for each in audits] == [each.id for each in made]
    assert all(each.agrees for each in audits)
    told, why = loop.audit(made[-1].id).whys, made[-1].why
    assert [each.terms for each in told] == [each.terms for each in why]
    again = loop.decide({"hard": 0.5}, k=2, id="x", at=3000.0)
    assert loop.decide({"hard": 0.5}, k=2, id="x", at=3001.0) == again
    last = loop.runtime.learner.theta.copy()
    loop.close()
    found = Log.read(path).replay()
    assert np.array_equal(found.bandit.theta, last)
    assert not np.array_equal(last, theta)
    log = Log.read(path)
    with pytest.raises(ValueError, match="a pair: a preference says which arm is better"):
        list(log.sample)


def test_probabilities_of_pairs_are_exact():
    loop = opened(exploration=0.5)
    play(loop, 100)
    found = {}
    for k in range(3000):
        pair = loop.decide({"hard": 0.5}, k=2, id=f"d {k}", at=1000.0)
        found[tuple(pair.arms)] = found.get(tuple(pair.arms), 0) + 1
        expected = found.setdefault(("p", *pair.arms), pair.probability)
        assert pair.probability == expected
    pairs = [arms for arms in found if arms[0] != "p"]
    assert math.isclose(sum(found["p", *arms] for arms in pairs), 1.0)
    for arms in pairs:
        p = found["p", *arms]
        assert abs(found[arms] - 3000 * p) < 5.0 * math.sqrt(3000 * p * (1.0 - p))
    loop.close()


def test_late_repeated_corrected_and_missing_answers():
    loop = opened()
    ids = [loop.decide({"hard": 0.5}, k=2, at=10.0 * k).id for k in range(5)]
    assert loop.prefer(ids[0], 0, at=41.0) == "counted"
    assert loop.prefer(ids[0], 0, at=42.0) == "corrected"
    assert loop.prefer(ids[0], 1, at=43.0) == "corrected"
    assert loop.prefer(ids[2], 1, at=44.0) == "counted"
    assert loop.cancel(ids[3], at=45.0) == "cancelled"
    assert loop.prefer(ids[3], 1, at=46.0) == "late"
    assert loop.prefer(ids[4], 0, at=101.0) == "late"  # its window ended at 100
    assert loop.prefer("early", 1, at=102.0) == "held"
    loop.decide({"hard": 0.5}, k=2, id="early", at=103.0)
    loop.close_windows(200.0)
    log = loop.log()
    rows = {(row["id"], row["position"]): row for row in log.to_dicts()}
    found = [rows[id, j] for id in (*ids, "early") for j in (0, 1)]
    told = [(row["status"], row["reward"]) for row in found]
    assert told == [
        ("trained", 0.0), ("trained", 1.0),
        ("missing", None), ("missing", None),
        ("trained", 0.0), ("trained", 1.0),
        ("cancelled", None), ("cancelled", None),
        ("missing", None), ("missing", None),
        ("trained", 0.0), ("trained", 1.0),
    ]  # fmt: skip
    assert [rows[ids[4], j]["late"] for j in (0, 1)] == [1, 1]
    assert loop.runtime.learner.examples == 3
    assert np.allclose(loop.runtime.learner.theta, trained_by_hand(log).theta, rtol=0, atol=1e-12)
    assert loop.health().missing > 0.0
    loop.close()


def test_late_answers_are_trained_where_their_decision_was_shown():
    """The order of training is that of decisions, whatever the order of the answers."""
    rng = np.random.default_rng(5)
    prompt, slow = opened(), opened()
    waits = rng.uniform(1.0, 59.0, 50)
    told = []
    for k in range(50):
        pair = prompt.decide({"hard": 0.5}, k=2, id=f"{k}", at=100.0 * k)
        prompt.prefer(pair.id, k % 2, at=100.0 * k)
        slow.decide({"hard": 0.5}, k=2, id=f"{k}", at=100.0 * k)
        slow.prefer(f"{k}", k % 2, at=100.0 * k + waits[k])
        told.append(pair.arms)
    prompt.close_windows(6000.0), slow.close_windows(6000.0)
    assert slow.digest == prompt.digest
    assert len({tuple(arms) for arms in told}) > 1
    prompt.close(), slow.close()


def test_the_first_word_closes_a_pair_without_a_wait():
    loop = opened(reward=Preference())
    pair = loop.decide({"hard": 0.5}, k=2, at=0.0)
    assert loop.prefer(pair.id, 1, at=5000.0) == "counted"
    assert loop.prefer(pair.id, 0, at=5001.0) == "late"
    assert loop.runtime.learner.examples == 1
    loop.close()


def test_it_follows_a_change_and_beats_a_loop_that_hears_nothing():
    """Regret is counted over decisions; the two loops differ in the preferences alone."""
    found = {}
    for heard in (True, False):
        loop, rng, best = opened(policy=AutoDOMD, exploration=0.05), np.random.default_rng(3), []
        for k in range(500):
            strength = STRENGTH if k < 250 else {"small": 3.0, "middle": 1.0, "large": 0.0}
            pair = loop.decide({"hard": float(rng.random())}, k=2, id=f"{k}", at=10.0 * k)
            said = answer(rng, pair, strength)
            if heard:
                loop.prefer(pair.id, said, at=10.0 * k + 30.0)
            best.append(pair.arms[0] == max(strength, key=strength.get))
        found[heard] = np.mean(best[150:250]), np.mean(best[400:])
        loop.close()
    assert min(found[True]) > 0.75
    assert min(found[False]) < 0.4  # it stays with the arm that it began with
    assert sum(found[True]) > sum(found[False]) + 0.5


def test_erasure_relearns_as_if_a_person_had_never_answered(tmp_path):
    loop = opened(str(tmp_path / "a.db"))
    play(loop, 60)
    loop.close_windows(2000.0)
    log = loop.log()
    done = loop.erase(key="user 3", relearn=True)
    assert (done.decisions, done.relearned) == (9, True)
    left = loop.log()
    assert left["id"].to_list() == log.filter(log["key"] != "user 3")["id"].to_list()
    theta = trained_by_hand(left).theta
    assert np.allclose(loop.runtime.learner.theta, theta, rtol=0, atol=1e-12)
    loop.close()


def test_retention_and_new_columns(tmp_path):
    loop = opened(str(tmp_path / "a.db"), retention=300)
    play(loop, 30)
    loop.add_features(context={"long": Number(0, 9)})
    for k in range(30):
        pair = loop.decide({"hard": 0.2, "long": k % 10}, k=2, at=1000.0 + 10.0 * k)
        loop.prefer(pair.id, k % 2, at=1001.0 + 10.0 * k)
    loop.close_windows(3000.0)
    digest = loop.digest
    assert loop.runtime.learner.examples == 61  # the change counts as one
    loop.close()
    loop = Loop(str(tmp_path / "a.db"), training="inline")
    assert loop.digest == digest
    assert all(each.agrees for each in loop.audits())
    loop.close()


def test_fallbacks_holdouts_and_the_best_arm_alone():
    loop = opened(holdout=0.5)
    assert loop.record_fallback({"hard": 0}, id="f", default=["small", "large"], k=2, at=0.0)
    assert loop.prefer("f", 1, at=1.0) == "counted"
    made = [
        loop.decide({"hard": 0}, k=2, key=f"{k}", default=["middle", "small"], at=2.0)
        for k in range(20)
    ]
    held = [pair for pair in made if pair.role == "holdout"]
    assert 0 < len(held) < 20
    assert all(pair.arms == ["middle", "small"] for pair in held)
    assert loop.prefer(held[0].id, 0, at=3.0) == "counted"
    alone = loop.decide({"hard": 0}, default="small", at=4.0)
    assert alone.arm in ARMS
    with pytest.raises(ValueError, match="is no pair"):
        loop.prefer(alone.id, 0)
    loop.close_windows(1000.0)
    assert loop.runtime.learner.examples == 2
    found = loop.health()
    assert found.values == {"loop": None, "uniform": None, "default": None}
    assert found.misfits == ()
    repr(found)
    loop.close()


def test_a_batch_of_calls_and_sticky_answers():
    loop = opened(sticky="1h")
    first, again = loop.submit_many(
        [("decide", {"context": {"hard": 0}, "k": 2, "key": "ann", "at": t}) for t in (0.0, 5.0)]
    )
    assert first == again
    said = [("prefer", {"id": first.id, "position": j, "at": 6.0}) for j in (1, 2, 0)]
    counted, refused, corrected = loop.submit_many(said)
    assert (counted, corrected) == ("counted", "corrected")
    assert "position must be 0 or 1" in str(refused)
    loop.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key": "user", "policy": None}, "knows no key"),
        ({"prior": {"large": 0.9}}, "knows no prior"),
        ({"budget": Budget("cost", mean=1.0)}, "knows no budget"),
        ({"guard": Guard()}, "knows no guard"),
        ({"features": Features(arm={"model": Item(slots=4)}), "policy": AutoDOMD}, "knows no Item"),
        ({"policy": DOMD(problem=FEATURES.problem())}, "features.problem"),
    ],
)
def test_what_does_not_go_together_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        opened(**options)


def test_calls_that_do_not_go_together_are_refused():
    loop = opened()
    pair = loop.decide({"hard": 0}, k=2, at=0.0)
    refusals = [
        (lambda: loop.reward(pair.id, 1.0), "learns from preferences"),
        (lambda: loop.reward(pair.id, 1.0, position=0), "learns from preferences"),
        (lambda: loop.decide({"hard": 0}, k=3), "between two arms"),
        (lambda: loop.prefer(pair.id, 2), "must be 0 or 1"),
        (lambda: loop.prefer(pair.id, "large"), "position"),
        (lambda: loop.cancel(pair.id, position=1), "as a whole"),
        (lambda: loop.shadow("other", policy=AutoDOMD), "compares no candidates"),
        (lambda: loop.configure(guard=Guard()), "knows no guard"),
        (lambda: Guard(metrics={"a": Preference()}), "needs its range"),
        (lambda: Log.read(loop.log(), reward=Preference()), "not what one earns"),
    ]
    before = loop.head
    for call, words in refusals:
        with pytest.raises(ValueError, match=words):
            call()
    assert loop.head == before
    loop.close()
    rewards = opened(reward=Reward(0, 1))
    made = rewards.decide({"hard": 0}, k=2, at=0.0)
    with pytest.raises(ValueError, match="learns from rewards"):
        rewards.prefer(made.id, 0)
    rewards.close()


def test_the_declaration_goes_to_json_and_back():
    declared = Preference(wait="10min")
    assert Recipe.from_dict(declared.to_dict()) == declared
    assert declared != Reward(0, 1, wait="10min")
    with pytest.raises(TypeError):
        Preference(0, 1)


DECLARED = {
    "features": {"arm": {"model": {"type": "Category", "values": [*ARMS]}}},
    "reward": {"type": "Preference", "wait": "10min"},
    "policy": "DOMD",
    "arms": ARMS,
}


def test_over_http_and_by_the_clients(tmp_path, no_wait_for_the_disk):
    with in_thread(tmp_path / "a.db") as port:
        url, path = f"http://127.0.0.1:{port}", "/v1/loops/arena"
        assert ask(port, "PUT", path, DECLARED)[0] == 201
        assert ask(port, "PUT", path, DECLARED)[0] == 200
        assert ask(port, "GET", path)[1]["declaration"]["reward"] == {
            "type": "Preference", "wait": 600.0
        }  # fmt: skip
        pair = ask(port, "POST", f"{path}/decisions", {"context": {}, "k": 2})[1]
        assert len(pair["places"]) == 2
        said = f"{path}/decisions/{pair['id']}"
        assert ask(port, "PUT", f"{said}/preference", {"position": 1})[1]["outcome"] == "counted"
        assert ask(port, "PUT", f"{said}/preference", {"position": 2})[0] == 422
        assert ask(port, "PUT", f"{said}/preference", {})[0] == 422
        assert ask(port, "PUT", f"{said}/reward", {"value": 1})[0] == 422
        wrong = {**DECLARED, "reward": {"type": "Preference", "low": 0}}
        assert ask(port, "PUT", "/v1/loops/wrong", wrong)[0] == 422
        with Client(url, "arena") as client:
            made = client.decide({}, k=2)
            assert client.prefer(made.id, 0) == "counted"
            assert client.prefer(made.id, 1) == "corrected"

        async def both():
            async with AsyncClient(url, "arena") as client:
                made = await client.decide({}, k=2)
                return await client.prefer(made.id, 0)

        assert asyncio.run(both()) == "counted"
        assert ask(port, "GET", f"{path}/health")[1]["counts"]["reward counted"] == 3


# Two decisions that each played one arm


def compare(loop, n, seed=0, start=0.0, strength=STRENGTH):
    """Decide n times, two at a time, and say which one was better; return the ids."""
    rng, ids = np.random.default_rng(seed), []
    for k in range(n // 2):
        at = start + 20.0 * k
        both = [
            loop.decide(
                {"hard": float(rng.random())},
                id=f"{start:g} {k} {j}",
                key=f"user {(k + j) % 5}",
                at=at + 10.0 * j,
            )
            for j in (0, 1)
        ]
        ids += [each.id for each in both]
        lead = strength[both[0].arm] - strength[both[1].arm]
        first = rng.random() < 1.0 / (1.0 + math.exp(-lead))
        winner, loser = both if first else both[::-1]
        assert loop.prefer(winner.id, loser.id, at=at + 15.0) == "counted"
    return ids


def rows_of(loop):
    return {row["id"]: row for row in loop.log().to_dicts()}


def by_hand(rows, told, features=FEATURES, policy=DOMD):
    """Train a bandit on x_first - x_second of two decisions, and whether the first was better."""
    bandit = Bandit(policy(problem=features.problem(Preference())))
    for first, second, won in told:
        x, y = (
            features.pad(features.encode(json.loads(row["context"]), [ARMS[row["arm"]]])[0])
            for row in (rows[first], rows[second])
        )
        bandit.update(x - y, won)
    return bandit.theta


@pytest.mark.parametrize("policy", [DOMD, AutoDOMD])
@pytest.mark.parametrize("wait", [0, 60])
def test_two_decisions_with_contexts_of_their_own_are_compared(wait, policy):
    loop = opened(reward=Preference(wait=wait), policy=policy)
    ids = compare(loop, 80)
    loop.close_windows(2000.0)
    rows = rows_of(loop)
    assert loop.runtime.learner.examples == 40
    told = [(a, b, rows[a]["reward"]) for a, b in zip(ids[::2], ids[1::2])]
    if not wait:  # then the winner's row is the first one
        told = [(a, b, 1.0) if won else (b, a, 1.0) for a, b, won in told]
    theta = by_hand(rows, told, policy=policy)
    assert np.allclose(loop.runtime.learner.theta, theta, rtol=0, atol=1e-12)
    assert loop.runtime.learner.theta[FEATURES.terms.index("hard")] != 0.0  # contexts differ
    assert {row["status"] for row in rows.values()} == {"trained" if wait else "open"}
    assert all(rows[a]["reward"] + rows[b]["reward"] == 1.0 for a, b, _ in told)
    assert all(0.0 < row["probability"] <= 1.0 for row in rows.values())
    loop.close()


@pytest.mark.parametrize("wait", [0, 60])
@pytest.mark.parametrize("rule", [0.2, Thompson(0.1, draws=20), InverseGap()])
def test_comparisons_give_the_same_after_restarts_in_replays_and_audits(tmp_path, rule, wait):
    path, declared = str(tmp_path / "a.db"), {"exploration": rule, "reward": Preference(wait=wait)}
    loop = opened(path, **declared)
    made = compare(loop, 40)
    made += [pair.id for pair in play(loop, 10, seed=2, start=1000.0)]
    digest = loop.digest
    loop.close()
    loop = opened(path, **declared)
    assert loop.digest == digest
    made += compare(loop, 20, seed=1, start=2000.0)
    loop.close_windows(4000.0)
    audits = [*loop.audits()]
    assert [each.id for each in audits] == made
    assert all(each.agrees for each in audits)
    assert loop.runtime.learner.examples == 40
    last = loop.digest
    loop.close()
    assert np.any(Log.read(path).replay().bandit.theta != 0.0)
    with pytest.raises(ValueError, match="a pair: a preference says which arm is better"):
        list(Log.read(path).sample)
    again = opened(path, **declared)
    assert again.digest == last
    again.close()


def test_late_repeated_corrected_and_cancelled_comparisons():
    """A comparison counts while both decisions are open, and is trained when the first closes."""
    loop = opened()
    a, b, c, d, e = (loop.decide({"hard": k / 10}, at=10.0 * k).id for k in range(5))
    assert loop.prefer(a, b, at=41.0) == "counted"
    assert loop.prefer(a, b, at=42.0) == "corrected"
    assert loop.prefer(b, a, at=43.0) == "corrected"  # the last word counts
    assert loop.prefer(b, c, at=44.0) == "counted"  # each with several others
    assert loop.prefer(d, a, at=45.0) == "counted"
    assert loop.cancel(d, at=46.0) == "cancelled"
    assert loop.prefer(e, d, at=47.0) == "late"
    assert loop.prefer(e, a, at=61.0) == "late"  # that of a ended at 60, e is open
    loop.close_windows(65.0)  # closes a alone
    assert loop.prefer(a, e, at=66.0) == "late"
    assert loop.runtime.learner.examples == 1
    open_ones = rows_of(loop)
    assert (open_ones[b]["status"], open_ones[b]["reward"]) == ("open", 1.0)
    loop.close_windows(200.0)
    rows = rows_of(loop)
    told = [(rows[id]["status"], rows[id]["reward"], rows[id]["late"]) for id in (a, b, c, d, e)]
    assert told == [
        ("trained", 0.0, 1),
        ("trained", 1.0, 0),
        ("trained", 0.0, 0),
        ("cancelled", None, 0),
        ("missing", None, 2),
    ]
    theta = by_hand(rows, [(a, b, 0.0), (b, c, 1.0)])
    assert np.allclose(loop.runtime.learner.theta, theta, rtol=0, atol=1e-12)
    counts = loop.counts
    assert (counts["reward counted"], counts["reward corrected"], counts["reward late"]) == (
        3,
        2,
        3,
    )
    loop.close()


def test_late_comparisons_are_trained_where_their_decisions_were_made():
    rng, prompt, slow = np.random.default_rng(5), opened(), opened()
    for loop in (prompt, slow):
        for k in range(40):
            both = [
                loop.decide({"hard": 0.1 * j}, id=f"{k} {j}", at=100.0 * k + j).id for j in (0, 1)
            ]
            late = 1.0 if loop is prompt else float(rng.uniform(2.0, 59.0))
            loop.prefer(*(both if k % 3 else both[::-1]), at=100.0 * k + late)
        loop.close_windows(5000.0)
    assert slow.digest == prompt.digest
    prompt.close(), slow.close()


def test_a_comparison_of_two_decisions_that_closed_at_once_is_trained_once():
    loop = opened()
    ids = [loop.decide({"hard": 0.5}, at=5.0).id for _ in range(3)]
    for winner, loser in ((0, 1), (2, 1), (2, 0)):
        loop.prefer(ids[winner], ids[loser], at=6.0)
    loop.close_windows(100.0)
    rows = rows_of(loop)
    assert loop.runtime.learner.examples == 3
    assert [rows[id]["reward"] for id in ids] == [0.5, 0.0, 1.0]
    theta = by_hand(rows, [(ids[0], ids[1], 1.0), (ids[0], ids[2], 0.0), (ids[1], ids[2], 0.0)])
    assert np.allclose(loop.runtime.learner.theta, theta, rtol=0, atol=1e-12)
    loop.close()


def test_without_a_wait_the_first_word_about_two_decisions_is_trained():
    loop = opened(reward=Preference())
    a, b = (loop.decide({"hard": k}, at=float(k)).id for k in (0, 1))
    assert loop.prefer(b, a, at=5000.0) == "counted"
    assert loop.prefer(a, b, at=5001.0) == loop.prefer(b, a, at=5002.0) == "late"
    assert loop.runtime.learner.examples == 1
    loop.close()


@pytest.mark.parametrize("relearn", [False, True])
@pytest.mark.parametrize("wait", [0, 60])
def test_erasure_removes_comparisons_with_a_person_whoever_won(tmp_path, wait, relearn):
    path = str(tmp_path / "a.db")
    loop = opened(path, reward=Preference(wait=wait))
    ids = compare(loop, 60)  # the last decisions are open
    before, told = rows_of(loop), loop.counts
    done = loop.erase(key="user 3", relearn=relearn)
    assert (done.decisions, done.events) == (12, 24)  # each has been compared with another person
    assert told["reward counted"] == 30
    gone = {id for id in ids if before[id]["key"] == "user 3"}
    assert not any(id in event.data for id in gone for event in loop.ledger.read())
    with pytest.raises(ValueError, match="retention or an erasure"):
        loop.prefer(sorted(set(ids) - gone)[-1], sorted(gone)[-1], at=605.0)
    loop.close_windows(2000.0)
    rows = rows_of(loop)
    if relearn:
        told = [(a, b) for a, b in zip(ids[::2], ids[1::2]) if not {a, b} & gone]
        told = [(a, b, before[a]["reward"]) for a, b in told]
        if not wait:
            told = [(a, b, 1.0) if won else (b, a, 1.0) for a, b, won in told]
        theta = by_hand(rows, told)
        assert np.allclose(loop.runtime.learner.theta, theta, rtol=0, atol=1e-12)
    digest = loop.digest
    loop.close()
    loop = opened(path, reward=Preference(wait=wait))
    assert loop.digest == digest
    assert all(each.agrees for each in loop.audits())
    loop.close()


def test_comparisons_under_retention_and_with_new_columns(tmp_path):
    path = str(tmp_path / "a.db")
    loop = opened(path, retention=300)
    ids = compare(loop, 60)
    old = loop.decide({"hard": 0.4}, at=1000.0)
    loop.add_features(context={"long": Number(0, 9)})
    new = loop.decide({"hard": 0.2, "long": 3}, at=1010.0)
    assert loop.prefer(new.id, old.id, at=1020.0) == "counted"  # rows of two lengths
    for k in range(30):
        both = [
            loop.decide({"hard": 0.2, "long": k % 10}, at=1100.0 + 10.0 * k + j).id for j in (0, 1)
        ]
        loop.prefer(*both, at=1105.0 + 10.0 * k)
    loop.close_windows(3000.0)
    digest, examples = loop.digest, loop.runtime.learner.examples
    assert examples == 62  # the change counts as one
    loop.close()
    loop = Loop(path, training="inline")
    assert loop.digest == digest
    assert all(each.agrees for each in loop.audits())
    late = loop.decide({"hard": 0.2, "long": 1}, at=200_000.0)
    loop.close_windows(200_000.0)
    loop.close()
    loop = Loop(path, training="inline")
    assert ids[0] not in loop.log()["id"].to_list()
    with pytest.raises(ValueError, match="retention or an erasure"):
        loop.prefer(late.id, ids[0], at=200_001.0)
    loop.close()


def test_which_decisions_can_be_compared():
    loop = opened(sticky="1h")
    pair = loop.decide({"hard": 0}, k=2, key="ann", at=0.0)
    one, same = (loop.decide({"hard": 0}, key="bob", at=t) for t in (1.0, 2.0))
    assert one.id == same.id
    head = loop.head
    for call, words in (
        (lambda: loop.prefer(one.id, same.id), "a sticky answer is the same decision"),
        (lambda: loop.prefer(one.id, pair.id), "showed a pair"),
        (lambda: loop.prefer(pair.id, one.id), "showed a pair"),
        (lambda: loop.prefer(one.id, "never made"), "is not in the log"),
        (lambda: loop.prefer("never made", one.id), "is not in the log"),
        (lambda: loop.prefer(one.id, 1), "is no pair"),
        (lambda: loop.prefer(one.id, None), "pass the position"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert loop.head == head
    found = loop.submit_many([
        ("prefer", {"id": one.id, "over": "never made"}),
        ("prefer", {"id": one.id, "over": "x", "position": 1}),
        ("decide", {"context": {"hard": 1}, "key": "cid", "id": "x", "at": 3.0}),
        ("prefer", {"id": one.id, "over": "x", "at": 4.0}),
    ])  # fmt: skip
    assert "is not in the log" in str(found[0])
    assert "pass the position" in str(found[1])
    assert found[3] == "counted"  # of the same group
    loop.close()


def test_comparisons_follow_a_change():
    loop, rng, shown = opened(policy=AutoDOMD, exploration=0.1), np.random.default_rng(3), []
    for k in range(600):
        strength = STRENGTH if k < 300 else {"small": 3.0, "middle": 1.0, "large": 0.0}
        made = [
            loop.decide({"hard": float(rng.random())}, id=f"{k} {j}", at=20.0 * k + j)
            for j in (0, 1)
        ]
        lead = strength[made[0].arm] - strength[made[1].arm]
        first = rng.random() < 1.0 / (1.0 + math.exp(-lead))
        winner, loser = made if first else made[::-1]
        loop.prefer(winner.id, loser.id, at=20.0 * k + 15.0)
        shown.append(np.mean([each.arm == max(strength, key=strength.get) for each in made]))
    assert np.mean(shown[150:300]) > 0.6
    assert np.mean(shown[500:]) > 0.6
    loop.close()


def test_comparisons_over_http_and_by_the_clients(tmp_path, no_wait_for_the_disk):
    with in_thread(tmp_path / "a.db") as port:
        url, path = f"http://127.0.0.1:{port}", "/v1/loops/arena"
        assert ask(port, "PUT", path, DECLARED)[0] == 201
        a, b = (ask(port, "POST", f"{path}/decisions", {"context": {}})[1]["id"] for _ in "ab")
        said = f"{path}/decisions/{a}/preference"
        assert ask(port, "PUT", said, {"over": b})[1]["outcome"] == "counted"
        assert ask(port, "PUT", said, {"over": "never made"})[0] == 422
        assert ask(port, "PUT", said, {"over": b, "position": 1})[0] == 422
        with Client(url, "arena") as client:
            x, y = client.decide({}), client.decide({})
            assert client.prefer(x.id, y.id) == "counted"
            assert client.prefer(y.id, x.id) == "corrected"

        async def both():
            async with AsyncClient(url, "arena") as client:
                x, y = await client.decide({}), await client.decide({})
                return await client.prefer(x.id, y.id)

        assert asyncio.run(both()) == "counted"


@pytest.mark.usefixtures("no_wait_for_the_disk")
def test_comparisons_and_their_erasure_are_the_same_in_postgresql(postgres, tmp_path):
    found = []
    for address in (postgres.url(), str(tmp_path / "a.db")):
        loop = opened(address)
        compare(loop, 60)
        done = loop.erase(key="user 3", relearn=True)
        loop.close_windows(2000.0)
        found.append((done, loop.digest))
        loop.close()
    assert found[0] == found[1]
    assert found[0][0].events == 24


@pytest.mark.usefixtures("no_wait_for_the_disk")
def test_two_processes_compare_decisions_of_each_other(postgres):
    url, declared = postgres.url(), {"training": "background"}
    with opened(url, **declared) as first, opened(url, **declared) as second:
        a, b = first.decide({"hard": 0}, at=0.0), second.decide({"hard": 1}, at=1.0)
        assert first.prefer(b.id, a.id, at=2.0) == "counted"
        assert second.prefer(a.id, b.id, at=3.0) == "corrected"
        second.close_windows(100.0)
        first.decide({"hard": 1}, at=101.0)
        assert first.wait_until_trained(20)
        assert first.runtime.learner.examples == 1
