"""Hostile input at every public door: a ValueError that says what is wrong, and nothing changed."""

import io
import json
import os
import pickle
import zipfile
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
from driftbandit import DOMD, Bandit, Problem, Recipe, Run, Uniform
from driftbandit.core.layout import views

hostile = partial(settings, derandomize=True, deadline=None)
a = st.sampled_from

HUGE = a([10**400, -(10**400)])
NOT_FINITE = a([np.nan, np.inf, -np.inf, np.float32("nan"), np.float64("inf")])
TEXT = a(["", "1", "0.5", "nan", b"1", b"", np.str_("1"), "\x00"]) | st.text(max_size=5)
COMPLEX = a([0j, 1 + 0j, np.complex128(0.5), np.complex64(1j)]) | st.complex_numbers()
NESTED = a([[], [1.0], (1,), {}, {1: 1}, {1}, np.ones(1), np.ones(2), np.ones((1, 1, 1, 1))])
OBJECTS = st.builds(object) | a([len, DOMD, db.Bernoulli, np.float64, np.timedelta64(1, "s")])
JUNK = TEXT | COMPLEX | NESTED | OBJECTS
NOT_A_NUMBER = JUNK | HUGE | NOT_FINITE | a([True, False, np.True_, np.False_])
NEGATIVE = NOT_A_NUMBER | st.floats(max_value=-5e-324) | st.integers(max_value=-1)
NOT_POSITIVE = NEGATIVE | a([0, 0.0, -0.0, np.int64(0)])
NOT_A_SHARE = NOT_POSITIVE | st.floats(min_value=1.0, exclude_min=True) | st.integers(min_value=2)
NOT_WHOLE = NEGATIVE | st.floats(0.01, 1e9).filter(lambda v: v != int(v))
NOT_A_COUNT = NOT_WHOLE | st.just(0)
NOT_A_SEED = NOT_WHOLE.filter(lambda v: v is True or not isinstance(v, int) or v < 0) | st.none()
NOT_ROUNDS = NOT_POSITIVE.filter(lambda v: not np.array_equal(v, np.inf)) | st.floats(0, 9e-4)
NOT_A_RECIPE = NOT_A_NUMBER | st.integers() | a([Problem, Problem(dim=3).to_dict(), iter("x")])

GOOD = np.eye(3)  # contexts have dimension 3 and norm at most 2
PROBLEM = Problem(dim=3, radius=0.5, context_norm=2.0, horizon=100, path_length=1.0)
DRESS = a([np.copy, np.asfortranarray, np.ndarray.tolist, np.float32, np.longdouble])
UNREAL = [[0.1, "x", 0.2], ["0.1"] * 3, [None] * 3, [0.1, [0.2], 0.3], [10**400] * 3, [0j] * 3]
UNREAL += [np.zeros(3, dtype=kind) for kind in (complex, object, "U3", "m8[s]", [("a", float)])]
RAGGED = [[GOOD[0], [0.1]], [GOOD[0], 0.1], [[], GOOD[0]], [GOOD[0], None], [[], []], [[[]]]]
NO_ARRAY = st.none() | JUNK | HUGE | a([*UNREAL, *RAGGED, [["0.1"] * 3] * 2, [[0j] * 3] * 2])


def misshapen(*shapes):
    return st.builds(lambda shape, dress: dress(np.full(shape, 0.1)), a(shapes), DRESS)


@st.composite
def poisoned(draw, *shape, poison=(np.nan, np.inf, -np.inf, 1e200, -1e308, 2.00001, -1e6)):
    """An array of good size but for one entry."""
    X = np.full(shape, 0.1)
    X.flat[draw(st.integers(0, X.size - 1))] = draw(a(poison))
    with np.errstate(over="ignore"):
        return draw(DRESS)(X)


NOT_A_CONTEXT = NO_ARRAY | poisoned(3) | misshapen((), (0,), (2,), (4,), (1, 3), (3, 1), (1, 1, 3))
NOT_ARMS = NO_ARRAY | misshapen((), (3,), (0,), (0, 3), (3, 0), (2, 2), (2, 4), (1, 2, 3))
NOT_ARMS |= st.integers(1, 9).flatmap(lambda n: poisoned(n, 3))
NOT_GIVEN = NO_ARRAY | misshapen((), (3,), (0, 3), (2, 0), (1, 1, 1, 1))
NOT_GIVEN |= poisoned(2, 3, poison=(np.nan, np.inf, -np.inf))

NUMBERS = st.floats() | st.integers() | HUGE | a([-1e-12, 1 + 1e-12, 0.5, 4.5, 4 + 1e-9, 6, 11])
SUPPORT = {
    db.Bernoulli(): lambda r: r in (0, 1),
    db.Binomial(5): lambda r: r in range(6),
    db.Gaussian(1.0, 4.0): lambda r: -4 <= r <= 4,
    db.Poisson(10): lambda r: r in range(11),
}


def refuses(call, *hints):
    """A ValueError, no relative of it, whose message holds one of the hints."""
    with pytest.raises(ValueError) as caught:
        call()
    assert caught.type is ValueError
    assert any(hint in str(caught.value) for hint in hints), f"{caught.value} says none of {hints}"


def shrugs_off(bandit, call, *hints):
    """Refuses, is bit for bit what it was, and goes on."""
    before, rounds = pickle.dumps(bandit), bandit.rounds
    refuses(call, *hints)
    assert pickle.dumps(bandit) == before
    bandit.update(GOOD[bandit.choose(GOOD)], 1)
    assert bandit.rounds == rounds + 1


@cache
def bandit_of(policy, family):
    return Bandit(policy(problem=Problem(dim=3, context_norm=2.0, family=family)))


every_policy = pytest.mark.parametrize("policy", [DOMD, Uniform])
every_family = pytest.mark.parametrize("family", SUPPORT, ids=repr)


@every_policy
@every_family
@pytest.mark.parametrize("entry", ["choose", "scores", "predict"])
@hostile(max_examples=80)
@given(arms=NOT_ARMS)
def test_arms_that_are_no_contexts_are_refused(policy, family, entry, arms):
    bandit = bandit_of(policy, family)
    shrugs_off(bandit, lambda: getattr(bandit, entry)(arms), "expected real numbers", "context ")


@every_policy
@every_family
@hostile(max_examples=100)
@given(x=NOT_A_CONTEXT, reward=a([1, 1.0, np.int64(1), True]))
def test_learning_from_what_is_no_context_is_refused(policy, family, x, reward):
    bandit = bandit_of(policy, family)
    shrugs_off(bandit, lambda: bandit.update(x, reward), "expected real numbers", "context ")


@every_policy
@every_family
@hostile(max_examples=150)
@given(data=st.data(), x=a([GOOD[0], [0.0, 1.0, 0.0], (1, 0, 0), np.float32(GOOD[2])]))
def test_rewards_outside_the_support_are_refused(policy, family, data, x):
    bandit, impossible = bandit_of(policy, family), lambda r: not SUPPORT[family](r)
    reward = data.draw(NUMBERS.filter(impossible) | NOT_FINITE | JUNK | st.none())
    shrugs_off(bandit, lambda: bandit.update(x, reward), "reward must be")


@every_policy
@hostile(max_examples=100)
@given(steps=NEGATIVE | st.none(), level=NOT_A_SHARE | a([1, 1.0]))
def test_impossible_ages_and_levels_are_refused(policy, steps, level):
    bandit = bandit_of(policy, db.Bernoulli())
    shrugs_off(bandit, lambda: bandit.forget(steps), "steps")
    shrugs_off(bandit, lambda: bandit.predict(GOOD, level=level), "level")


TUNING = {"regularization": NOT_POSITIVE, "step": NOT_POSITIVE, "bonus": NEGATIVE}
TUNING |= {"delta": NOT_A_SHARE, "scale": NEGATIVE, "discount": NOT_A_SHARE}
TUNING |= {"half_life": NOT_ROUNDS}
WORLD = {"horizon": NOT_A_COUNT, "dim": NOT_A_COUNT, "radius": NOT_POSITIVE, "family": NOT_A_RECIPE}
KNOWN = {"context_norm": NOT_POSITIVE, "path_length": NEGATIVE, "change_points": NOT_WHOLE}
ARMS = {"arms": NOT_A_RECIPE}
DRAWN = {"count": NOT_A_COUNT | st.none(), "shortest": NOT_A_SHARE, "intercept": NEGATIVE}
DOORS = {
    partial(Problem, dim=3): WORLD | KNOWN,
    db.Binomial: {"trials": NOT_A_COUNT},
    db.Gaussian: {"variance": NOT_POSITIVE, "bound": NOT_POSITIVE},
    db.Poisson: {"bound": NOT_A_COUNT},
    partial(DOMD, problem=PROBLEM): TUNING | {"problem": NOT_A_RECIPE},
    partial(db.GLBOMD, problem=PROBLEM): TUNING,
    partial(db.Greedy, problem=PROBLEM): TUNING,
    partial(DOMD.from_theory, PROBLEM): TUNING,
    DOMD.from_theory: {"problem": NOT_A_RECIPE | st.none()},
    Uniform: {"problem": NOT_A_RECIPE | st.none()},
    db.Circle: WORLD | ARMS | {"turns": NEGATIVE | st.none()},
    db.SignFlip: WORLD | ARMS,
    db.RandomWalk: WORLD | ARMS | {"stride": NOT_POSITIVE | st.none()},
    db.Jumps: WORLD | ARMS | {"jumps": NOT_WHOLE | st.none() | st.integers(min_value=5000)},
    db.Stationary: {name: bad | st.none() for name, bad in (WORLD | ARMS).items()},
    db.Switching: WORLD | ARMS | {"period": NOT_A_COUNT | st.none()},
    db.Bursts: WORLD | ARMS | {"bursts": NOT_WHOLE | st.none(), "length": NOT_A_COUNT | st.none()},
    db.OneCoordinate: WORLD | ARMS | {"turns": NEGATIVE | st.none(), "swing": NOT_A_SHARE},
    db.Fading: WORLD | ARMS | {"last": NOT_A_SHARE},
    db.Levels: WORLD | ARMS | {"spread": NEGATIVE | st.none(), "day": NOT_A_COUNT | st.none()},
    partial(db.AutoDOMD, problem=PROBLEM): {"share": NEGATIVE, "bonus": NEGATIVE},
    db.FreshArms: DRAWN,
    db.FixedArms: DRAWN,
    db.GivenArms: {"arms": NOT_GIVEN},
    partial(Bandit, DOMD(problem=PROBLEM)): {"seed": NOT_A_SEED},
    Bandit: {"policy": NOT_A_RECIPE | st.none()},
}
OPTIONS = [(make, name) for make, options in DOORS.items() for name in options]


def label(value):
    return value if isinstance(value, str) else getattr(value, "func", value).__qualname__


@pytest.mark.parametrize(("make", "name"), OPTIONS, ids=label)
@hostile(max_examples=80)
@given(data=st.data())
def test_an_option_out_of_its_range_is_refused_by_name(make, name, data):
    value = data.draw(DOORS[make][name])
    refuses(lambda: make(**{name: value}), name)


@pytest.mark.parametrize("make", [make for make in DOORS if make != DOMD.from_theory], ids=label)
@hostile(max_examples=20)
@given(name=st.text("abcdefgh_", min_size=1), value=NOT_A_RECIPE)
def test_an_unknown_option_is_a_type_error_that_names_it(make, name, value):
    with pytest.raises(TypeError, match=f"'{name}'"):
        make(**{name: value})


@pytest.mark.parametrize("policy", [DOMD, db.Greedy, db.GLBOMD])
@hostile(max_examples=20)
@given(share=st.floats(0.1, 1), number=st.floats(0, 9), rounds=st.floats(1, 1e9))
def test_options_that_say_one_thing_twice_are_refused(policy, share, number, rounds):
    make = partial(policy, problem=PROBLEM)
    refuses(lambda: make(discount=share, half_life=rounds), "discount")
    refuses(lambda: make(bonus=number, scale=number), "bonus")
    refuses(lambda: make(bonus=number, delta=share), "bonus")


@pytest.mark.parametrize("name", ["bonus", "step", "regularization", "scale", "delta"])
@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e155, 1e308])
def test_numbers_at_the_ends_of_the_scale_are_refused_or_harmless(name, size):
    try:
        bandit = Bandit(DOMD(problem=PROBLEM, **{name: size}))
    except ValueError as error:
        assert name in str(error)  # noqa: PT017
    else:
        bandit.update(GOOD[0], 1)
        assert np.isfinite(bandit.scores(GOOD)).all()


@pytest.mark.parametrize("policy", [DOMD, db.Greedy])
def test_theory_asks_for_what_it_needs_to_know(policy):
    for known in ({}, {"horizon": 100}):
        refuses(partial(policy.from_theory, Problem(dim=3, radius=1.0, **known)), "path_length")
    for known in ({"path_length": 1.0}, {"change_points": 1}, {"path_length": 1.0, "horizon": 1}):
        refuses(partial(policy.from_theory, Problem(dim=3, radius=1.0, **known)), "horizon")


@hostile(max_examples=40)
@given(rounds=st.integers(1, 9), dim=st.integers(1, 6).filter(lambda d: d != 3))
def test_given_arms_that_do_not_fit_the_world_are_refused(rounds, dim):
    short = db.GivenArms(np.ones((rounds, 2, 3)))
    refuses(lambda: db.SignFlip(dim=3, horizon=10, arms=short), f"{rounds} rounds")
    refuses(lambda: db.SignFlip(dim=dim, arms=db.GivenArms(GOOD)), f"dim is {dim}")
    refuses(lambda: db.Circle(dim=1, horizon=rounds), "dim >= 2")


FLIP = db.SignFlip(horizon=5, dim=3)
NO_SEEDS = st.none() | st.just([]) | st.integers() | st.floats() | TEXT | st.builds(object)
NO_SEEDS |= st.builds(lambda n, bad: [*range(n), bad, 7], st.integers(0, 3), NOT_A_SEED)


@pytest.mark.parametrize("policy", [DOMD, Uniform, db.Oracle])
@hostile(max_examples=60)
@given(seeds=NO_SEEDS, dim=st.integers(4, 9), junk=NOT_A_RECIPE | st.none())
def test_simulations_that_cannot_be_played_are_refused(policy, seeds, dim, junk):
    refuses(lambda: db.simulate(policy(problem=PROBLEM), FLIP, seeds), "seed")
    refuses(lambda: db.simulate(policy(problem=Problem(dim=dim)), FLIP, [0]), f"dimension {dim}")
    refuses(lambda: db.simulate(junk, FLIP, [0]), "policy")
    refuses(lambda: db.simulate(policy(problem=PROBLEM), junk, [0]), "environment")


both_kinds = pytest.mark.parametrize("kind", [Bandit, Run])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One whole file of each kind, named like its class."""
    folder = tmp_path_factory.mktemp("files")
    bandit = Bandit(DOMD(problem=PROBLEM))
    bandit.update(GOOD[0], 1)
    bandit.save(folder / "Bandit")
    db.simulate(bandit.policy, FLIP, [1, 2]).save(folder / "Run")
    return folder


def refuses_file(folder, kind, content):
    (folder / "damaged").write_bytes(content)
    refuses(lambda: kind.load(folder / "damaged"), "damaged", "driftbandit")


def parts(folder, kind):
    with np.load(folder / kind.__name__) as archive:
        columns = dict(archive)
    return json.loads(str(columns.pop("header"))), columns


def npz(header, columns):
    file = io.BytesIO()
    np.savez(file, **({"header": np.array(json.dumps(header))} | columns))
    return file.getvalue()


@both_kinds
@hostile(max_examples=200)
@given(place=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255), noise=st.binary())
def test_damaged_bytes_are_refused_or_did_not_matter(folder, kind, place, mask, noise):
    whole = (folder / kind.__name__).read_bytes()
    at = int(place * len(whole))
    for content in (whole[:at], noise, noise.hex().encode(), whole[at + 1 :]):
        refuses_file(folder, kind, content)
    try:
        refuses_file(folder, kind, whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
    except pytest.fail.Exception:  # a date, say: zip archives hold bytes that nobody reads
        same = [pickle.dumps(kind.load(folder / name)) for name in (kind.__name__, "damaged")]
        assert same[0] == same[1]


NO_RECIPES = [None, True, -1, 1.5, "x", [], {}, [1], {"type": "Nobody"}, {"type": []}]
NO_RECIPES += [{"type": t, "problem": PROBLEM.to_dict()} for t in ("Policy", "Recipe", "Binomial")]
HEADERS = {
    "format": [None, "x", [], 1],
    "kind": [None, "x", [], "policy"],
    "version": [None, "x", [], {}, 1, 99, 10**400, 0, -1],
    "policy": [*NO_RECIPES, FLIP.to_dict(), DOMD(problem=Problem(dim=4)).to_dict()],
    "environment": [*NO_RECIPES, DOMD(problem=PROBLEM).to_dict()],
    "rng": [None, 1, "x", [], {}, {"bit_generator": "MT19937"}],
    "seeds": [None, 5, "xy", {}, [], [1], [1, -2], [1, 1.5], [1, "2"], [1, None], [1, 2, 3]],
}


@both_kinds
@pytest.mark.parametrize("key", HEADERS)
def test_headers_that_save_never_wrote_are_refused(folder, kind, key):
    header, columns = parts(folder, kind)
    if header.pop(key, None) is not None:
        for bad in ({}, *({key: value} for value in HEADERS[key])):
            refuses_file(folder, kind, npz(header | bad, columns))


ARRAYS = {
    "too long": lambda x: np.repeat(x, 2, axis=-1),
    "too short": lambda x: x[..., :-1],
    "empty": lambda x: x[:0],
    "an axis more": lambda x: x[None],
    "a number": lambda x: x.flat[0],
    "text": lambda x: x.astype(str),
    "complex": lambda x: x.astype(complex),
    "not finite": lambda x: np.full(x.shape, np.nan),
}


@both_kinds
@pytest.mark.parametrize("damage", ARRAYS)
def test_arrays_that_save_never_wrote_are_refused(folder, kind, damage):
    header, columns = parts(folder, kind)
    for name in columns:
        refuses_file(folder, kind, npz(header, {k: columns[k] for k in columns if k != name}))
        refuses_file(folder, kind, npz(header, columns | {name: ARRAYS[damage](columns[name])}))


@pytest.mark.parametrize(
    ("name", "value"),
    [("theta", 5.0), ("H", 0.0), ("H", -1.0), ("t", -5), ("t", 1e300), ("g", 0.0)],
)
def test_memories_that_no_bandit_can_have_are_refused(folder, name, value):
    header, columns = parts(folder, Bandit)
    policy = Recipe.from_dict(header["policy"])
    views(columns["row"][None], policy.fields)[name][:] = value
    refuses_file(folder, Bandit, npz(header, columns))


@both_kinds
def test_other_peoples_files_are_refused(folder, kind):
    header, columns = parts(folder, kind)
    refuses(lambda: kind.load(folder / {Bandit: "Run", Run: "Bandit"}[kind]), "not a driftbandit")
    for foreign in ("{}", "[]", "null", "", "{", '"driftbandit"', "[" * 9999):
        refuses_file(folder, kind, npz(header, columns | {"header": np.array(foreign)}))
    file = io.BytesIO(npz(header, {}))
    with zipfile.ZipFile(file, "a") as archive:
        for name in columns:
            archive.writestr(name, "no array")
    refuses_file(folder, kind, file.getvalue())


@both_kinds
@pytest.mark.parametrize("name", ["header", "theta", "regret", "extra"])
def test_nothing_is_ever_unpickled(folder, kind, name):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(folder / "sprung"),)

    header, columns = parts(folder, kind)
    trap = np.array([Trap()], dtype=object)
    for content in (pickle.dumps(Trap()), pickle.dumps(trap)):
        refuses_file(folder, kind, content)
    content = npz(header, columns | {name: trap})
    if name == "header" or name in columns:
        refuses_file(folder, kind, content)
    else:  # what is not asked for is not read
        (folder / "extra").write_bytes(content)
        kind.load(folder / "extra")
    assert not (folder / "sprung").exists()
