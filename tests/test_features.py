"""Raw values to contexts: against a naive encoder, from dicts and frames, with hostile input."""

import copy
import hashlib
import json
import logging
import math
import pickle
import subprocess
import sys
from collections import Counter
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit import Bernoulli, Category, Features, Flag, Gaussian, Number, Recipe, Vector
from driftbandit.features.encoders import bucket, fold, stable

quick = settings(max_examples=40, deadline=None, derandomize=True)

SHOP = Features(
    context={
        "age": Number(18, 90),
        "country": Category(["NL", "DE", "FR"]),
        "hour": Number(0, 24, cyclic=True),
    },
    arm={"price": Number(0, 100), "genre": Category(["rock", "jazz"])},
)


# A reference implementation: every term by its name, from the definition.


def naive_block(name, feature, value, encoding=3):
    """Coordinates of one value by name."""
    gone = value is None or (isinstance(value, float) and math.isnan(value))
    out = dict.fromkeys(feature.coordinates(name, encoding), 0.0)
    if isinstance(feature, Category):
        room = feature.size or feature.room
        if feature.values is None or (room and not gone and value not in feature.values):
            key = f"{name} {feature.rest}" if gone else f"{name}#{stable(f'{name}={value}') % room}"
        else:
            key = f"{name}={value}" if value in feature.values else f"{name} other"
            key = f"{name}=None" if gone and None in feature.values else key
        return out | {key: 1.0}
    if gone:
        return out | {f"{name} missing": 1.0}
    if isinstance(feature, Vector):
        value = naive_unit(value)
        if feature.keep:
            signs = naive_signs(feature.size, feature.keep)
            value = [sum(map(math.prod, zip(row, value))) / feature.keep**0.5 for row in signs]
            value = [v / max(1.0, math.hypot(*value)) for v in value]
        return out | dict(zip(feature.coordinates(name), value))
    if isinstance(feature, Flag):
        return out | {name: 1.0 if value else -1.0}
    value = min(max(value, feature.low), feature.high)
    if feature.log:
        place = math.log(value / feature.low) / math.log(feature.high / feature.low)
    else:
        place = (value - feature.low) / (feature.high - feature.low)
    if feature.curve and encoding == 3:
        bends = range(1, feature.curve)
        found = {f"{name} bend {k}": 0.7 * math.sin(k * math.pi * place) / k for k in bends}
        return out | {name: 2.0 * place - 1.0} | found
    if feature.curve:
        norm = math.sqrt(sum(1.0 / k**2 for k in range(1, feature.curve + 1)))
        heights = {k: math.cos(k * math.pi * place) / k / norm for k in range(1, feature.curve + 1)}
        return out | {f"{name} wave {k}": height for k, height in heights.items()}
    if feature.cyclic:
        angle = 2.0 * math.pi * place - math.pi
        return out | {f"{name} cos": math.cos(angle), f"{name} sin": math.sin(angle)}
    return out | {name: 2.0 * place - 1.0}


def naive_unit(vector):
    norm = math.hypot(*vector)
    return [v / norm if norm else 0.0 for v in vector]


def naive_signs(size, keep):
    """The random projection: a bit of a hash says whether a number counts as it is or negated."""
    data = hashlib.shake_256(f"driftbandit {size} {keep}".encode()).digest(-(-keep * size // 8))
    bits = "".join(f"{byte:08b}" for byte in data)
    return [[-1.0 if bits[k * size + j] == "1" else 1.0 for j in range(size)] for k in range(keep)]


def naive_row(features, context, arm):
    """x by term, before folding; only for declarations that never grew."""
    sides = [
        {"1": {"1": 1.0}}
        | {n: naive_block(n, f, raw.get(n), features.encoding) for n, f in declared.items()}
        for declared, raw in ((features.context, context), (features.arm, arm))
    ]
    pairs = [
        (c, a)
        for c in sides[0]
        for a in sides[1]
        if "1" in (c, a) or features.interactions is None or (c, a) in features.interactions
    ]
    if not has_context_terms(features):
        pairs = [(c, a) for c, a in pairs if c == "1" or a != "1"]
    kinds = Counter((c == "1", a == "1") for c, a in pairs)
    terms = {}
    for c, a in pairs:
        weight = 1.0 / math.sqrt(len(kinds) * kinds[c == "1", a == "1"])
        for i, left in sides[0][c].items():
            for j, right in sides[1][a].items():
                name = j if i == "1" else i if j == "1" else f"{i}*{j}"
                terms[name] = weight * left * right
    assert set(terms) == set(features.terms)
    return np.array([terms[name] for name in features.terms])


def has_context_terms(features):
    """Terms of the context alone are left out where there are more terms than coordinates."""
    exact = Recipe.from_dict(features.to_dict() | {"dim": "exact"})
    limit = None if features.dim == "exact" else features.dim or 64
    return features.encoding == 1 or limit is None or exact.size <= limit


def naive_fold(features):
    """The fold matrix (terms, size): pairs of columns that fit into three quarters of the
    coordinates keep theirs, those of the arm first, then the smallest; the others are hashed."""
    M, own = np.zeros((len(features.terms), features.size)), []
    if features.encoding > 1:
        blocks = {}
        for term in features.terms:
            blocks.setdefault(naive_pair(features, term), []).append(term)
        room = features.size - math.ceil(features.size / 4)
        for pair in sorted(blocks, key=lambda pair: ("1" not in pair, len(blocks[pair]))):
            if len(blocks[pair]) <= room:
                room -= len(blocks[pair])
                own += [term for term in features.terms if term in blocks[pair]]
    own.sort(key=features.terms.index)
    for t, term in enumerate(features.terms):
        h = stable(term)
        if term in own:
            M[t, own.index(term)] = 1.0
        else:
            M[t, len(own) + (h >> 1) % (features.size - len(own))] = -1.0 if h & 1 else 1.0
    return M


def naive_pair(features, term):
    """The pair of columns that a term is of; columns here have names such as c0 and a1."""
    context, _, arm = term.partition("*")
    if not arm and context[:2] in features.arm:
        context, arm = "1", context
    return context[:2] if context != "1" else "1", arm[:2] or "1"


# What hypothesis draws: declarations, and raw values for them, legal but odd.

ends = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
spans = st.floats(10.0, 1e6)  # of ends up to 1e6: rounding stays below the tolerance
numbers = st.builds(
    lambda low, span, kind, required, curve: Number(
        abs(low) + 1e-3 if kind == "log" else low,
        (abs(low) + 1e-3 if kind == "log" else low) + span,
        cyclic=kind == "cyclic",
        log=kind == "log",
        required=required,
        curve=None if kind == "cyclic" else curve,
    ),
    ends,
    spans,
    st.sampled_from(["plain", "log", "cyclic"]),
    st.booleans(),
    st.sampled_from([None, False, True, 1, 3]),
)
words = st.lists(st.text(max_size=4), min_size=1, max_size=4, unique=True)
categories = st.one_of(
    words.map(Category),
    words.map(lambda w: Category([*(v for v in w if v != "None"), None])),
    words.map(lambda w: Category(w, room=3)),
    st.integers(1, 5).map(lambda n: Category(size=n)),
)
vectors = st.integers(1, 4).map(Vector) | st.integers(2, 4).map(lambda n: Vector(n, keep=2))
columns = st.one_of(numbers, categories, st.just(Flag()), vectors)


def raw(feature):
    """Legal values of a column, missing, unknown and far out included."""
    if isinstance(feature, Number):
        inside = (
            st.floats(-1e9, 1e9)
            | st.integers(-100, 100)
            | st.sampled_from([feature.low, feature.high])
        )
    elif isinstance(feature, Flag):
        inside = st.sampled_from([True, False, 0, 1])
    elif isinstance(feature, Category):
        inside = st.text(max_size=4)
        if feature.values:
            inside |= st.sampled_from(feature.values)
    else:
        inside = st.lists(st.floats(-1e300, 1e300), min_size=feature.size, max_size=feature.size)
    return inside if feature.required else inside | st.none() | st.just(math.nan)


def side(name):
    return st.lists(columns, max_size=3).map(
        lambda each: {f"{name}{k}": f for k, f in enumerate(each)}
    )


@st.composite
def declared(draw, dim=None):
    context, arm = draw(side("c")), draw(side("a").filter(bool))
    interactions = None
    if context and draw(st.booleans()):
        pairs = [(c, a) for c in context for a in arm]
        interactions = draw(st.lists(st.sampled_from(pairs), unique=True))
    encoding = draw(st.sampled_from([1, 2, 3]))
    return Features(context=context, arm=arm, interactions=interactions, dim=dim, encoding=encoding)


@st.composite
def played(draw, dim=None, least=1):
    features = draw(declared(dim))

    def values(declared):
        return {
            n: draw(raw(f)) for n, f in declared.items() if f.required or draw(st.integers(0, 4))
        }

    n = draw(st.integers(least, 4))
    return features, values(features.context), [values(features.arm) for _ in range(n)]


@quick
@given(played(dim="exact"))
def test_rows_are_those_of_the_naive_encoder(play):
    features, context, arms = play
    X = features.encode(context, arms)
    assert X.shape == (len(arms), features.size)
    assert X.dtype == np.float64
    for x, arm in zip(X, arms):
        assert np.allclose(x, naive_row(features, context, arm), rtol=1e-9, atol=1e-9)


@quick
@given(played(dim="exact"), st.integers(2, 9))
def test_folding_is_the_exact_row_times_the_fold_matrix(play, dim):
    exact, context, arms = play
    data = exact.to_dict() | {"dim": dim}
    features = Recipe.from_dict(data)
    if not features.folded:
        assert features.size <= dim
        return
    X = np.array([naive_row(features, context, arm) for arm in arms]) @ naive_fold(features)
    X /= np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None]
    assert np.allclose(features.encode(context, arms), X, atol=1e-9)


@quick
@given(played() | played(dim=5))
def test_rows_are_never_longer_than_one(play):
    features, context, arms = play
    X = features.encode(context, arms)
    assert np.isfinite(X).all()
    assert np.linalg.norm(X, axis=1).max() <= 1.0 + 1e-12
    features.problem().check_contexts(X)


def random_column(rng):
    """A column of any kind, and a value of it: often at an end, outside, or missing."""
    low, high = 1.0, 1.0 + rng.exponential(50.0)
    ends = [low, high, 0.5 * (low + high), low - 1e6, high + 1e6]
    number = float(rng.choice([*ends, rng.uniform(low, high)]))
    n = int(rng.integers(1, 6))
    vector = (rng.standard_normal(n + 1) * 10.0 ** rng.integers(-200, 200)).tolist()
    kind, feature, value = (
        ("line", Number(low, high, curve=False), number),
        ("curve", Number(low, high, curve=n), number),
        ("log curve", Number(low, high, log=True, curve=n), number),
        ("cyclic", Number(low, high, cyclic=True), number),
        ("flag", Flag(), bool(n % 2)),
        ("category", Category(["a", "b"], room=n), "abc"[n % 3]),
        ("vector", Vector(n + 1), vector),
        ("projected vector", Vector(n + 1, keep=1), vector),
    )[rng.integers(8)]
    return kind, feature, None if rng.random() < 0.1 else value


@pytest.mark.parametrize("encoding", [1, 2, 3])
def test_no_declaration_gives_rows_above_its_norm(encoding):
    """Any mixture of kinds, exact or folded, also after growth: each kind comes many times."""
    rng, met, longest = np.random.default_rng(encoding), Counter(), 0.0
    for _ in range(400):
        columns = [random_column(rng) for _ in range(rng.integers(1, 6))]
        named = [(f"x{k}", feature) for k, (_, feature, _) in enumerate(columns)]
        raw = {f"x{k}": value for k, (_, _, value) in enumerate(columns)}
        cut, dim = int(rng.integers(0, len(named))), (None, "exact", 6, 20)[rng.integers(4)]
        sides = {"context": dict(named[:cut]), "arm": dict(named[cut:])}
        features = Features(**sides, dim=dim, encoding=encoding)
        met.update([*(kind for kind, _, _ in columns), f"folded {features.folded}"])
        assert features.norm == 1.0
        versions = [features]
        if not features.folded and rng.random() < 0.5:
            kind, new, raw["new"] = random_column(rng)
            versions.append(features.grow(**{("context", "arm")[rng.integers(2)]: {"new": new}}))
            met.update([kind, "grown"])
        for each in versions:
            context, arm = ({n: raw[n] for n in side} for side in (each.context, each.arm))
            X = each.encode(context, [arm])
            each.problem().check_contexts(X)
            assert np.linalg.norm(X) <= each.norm * (1.0 + 1e-12), each
            longest = max(longest, float(np.linalg.norm(X)) / each.norm)
    assert len(met) == 11, met
    assert min(met.values()) >= 30, met
    assert longest == pytest.approx(1.0, abs=1e-12)  # and no smaller bound would do


def test_the_bound_is_reached():
    features = Features(context={"a": Category(["x"]), "b": Flag()}, arm={"c": Category(["y"])})
    X = features.encode({"a": "x", "b": True}, [{"c": "y"}])
    assert np.linalg.norm(X) == pytest.approx(1.0, abs=1e-15)
    assert X[0, 0] == 0.5  # the constant has a quarter of the squared norm


@quick
@given(played() | played(dim=5), st.integers(0, 2**32 - 1))
def test_contributions_add_up(play, seed):
    features, context, arms = play
    theta = np.random.default_rng(seed).standard_normal(features.size)
    for x, arm in zip(features.encode(context, arms), arms):
        parts = features.contributions(context, arm, theta)
        assert sum(parts.values()) == pytest.approx(x @ theta, abs=1e-12)


@pytest.mark.parametrize("dim", ["exact", 16])
def test_a_contribution_is_the_columns_own_vector_times_theta(dim):
    features = Recipe.from_dict(SHOP.to_dict() | {"dim": dim})
    context, arm = {"age": 30, "country": "DE", "hour": 3}, {"price": 9, "genre": "jazz"}
    theta = np.random.default_rng(0).standard_normal(features.size)
    exact = naive_row(features, context, arm)
    M = naive_fold(features) if features.folded else np.eye(features.size)
    shrink = max(1.0, np.linalg.norm(exact @ M)) if features.folded else 1.0
    own = [k for k, t in enumerate(features.terms) if t.startswith("age") and "*price" in t]
    expected = exact[own] @ M[own] @ theta / shrink
    assert features.contributions(context, arm, theta)["age*price"] == pytest.approx(expected)


@quick
@given(declared() | declared(dim=7))
def test_json_and_pickle_give_the_same_declaration(features):
    again = Recipe.from_dict(json.loads(json.dumps(features.to_dict())))
    for copied in (again, pickle.loads(pickle.dumps(features)), copy.deepcopy(features)):
        assert copied == features
        assert copied.version == features.version
        assert hash(copied) == hash(features)
        assert copied.terms == features.terms


@quick
@given(played(), st.randoms(use_true_random=False))
def test_the_order_of_columns_does_not_matter(play, random):
    features, context, arms = play

    def mixed(mapping):
        items = list(mapping.items())
        random.shuffle(items)
        return dict(items)

    other = Features(
        context=mixed(features.context),
        arm=mixed(features.arm),
        interactions=features.interactions,
        encoding=features.encoding,
    )
    assert (other, other.version, other.terms) == (features, features.version, features.terms)
    X = other.encode(mixed(context), [mixed(arm) for arm in arms])
    assert np.array_equal(X, features.encode(context, arms))


ODD = [
    *(None, math.nan, math.inf, -math.inf, -0.0, 0, 1, 7, 7.0, True, False, "7", "rok", ""),
    *(10**400, 10**5000, 1e300, 2**53 + 1, np.float64(3.5), np.float32(0.1), np.int64(4)),
    *(np.bool_(True), np.uint8(3), [1.0], [1, 2], np.ones(2), np.array([math.nan]), {}, b"x"),
    *(pd.NA, pd.NaT, 1j, object, ("a",)),
]


def answer(call):
    """The bytes of the rows, or the error."""
    try:
        return call().tobytes()
    except ValueError as error:
        return str(error)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(played() | played(dim=5), st.data())
def test_plain_dicts_are_encoded_like_any_mappings(play, data):
    """Dicts are encoded by a faster path: same bits, same errors."""
    features, context, arms = play
    for row, names in ((context, features.context), *((arm, features.arm) for arm in arms)):
        for name in data.draw(st.lists(st.sampled_from(["typo", *names]), max_size=1)):
            row[name] = data.draw(st.sampled_from(ODD))
    other, others = MappingProxyType(context), [MappingProxyType(arm) for arm in arms]
    wanted = answer(lambda: features.encode(other, others))
    assert answer(lambda: features.encode(context, arms)) == wanted
    assert answer(lambda: features.encode(context, arms, Counter())) == wanted
    contexts = [context] * len(arms)
    if isinstance(wanted, bytes):
        assert answer(lambda: features.encode_pairs(contexts, arms)) == wanted
        assert np.concatenate(features.encode_each([context] * 2, [arms] * 2)).tobytes() == (
            wanted * 2
        )


def test_hashed_texts_stay_where_they_are_when_many_have_been_seen():
    features = Features(arm={"id": Category(size=5)})
    arms = [{"id": f"item {k}"} for k in range(20_000)]
    first = features.encode({}, arms)
    assert np.array_equal(features.encode({}, arms[::-1])[::-1], first)
    assert np.array_equal(
        features.encode({}, [{"id": True}, {"id": 1}, {"id": "1"}])[1:],
        (features.encode({}, [{"id": 1}, {"id": 1.0}])),
    )


@quick
@given(played(least=3))
def test_an_arm_alone_is_the_arm_among_others(play):
    features, context, arms = play
    X = features.encode(context, dict(enumerate(arms)))
    for x, arm in zip(X, arms):
        assert np.array_equal(features.encode(context, [arm])[0], x)


def test_a_column_may_be_called_type():
    features = Features(context={"type": Flag()}, arm={"values": Category(["a"])})
    assert Recipe.from_dict(json.loads(json.dumps(features.to_dict()))) == features


# Frames


def lines(n=50, seed=0):
    """Rows of a log as dicts, with gaps."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        row = {
            "age": float(rng.normal(40, 30)),
            "visits": int(rng.integers(0, 10_000)),
            "country": str(rng.choice(["NL", "DE", "FR", "US"])),
            "hour": float(rng.uniform(0, 24)),
            "vip": bool(rng.integers(2)),
            "embedding": rng.standard_normal(3).tolist(),
            "price": float(rng.uniform(0, 150)),
            "shelf": int(rng.integers(1, 5)),
        }
        rows.append({k: None if rng.random() < 0.1 else v for k, v in row.items()})
    return rows


def log_features(dim):
    return Features(
        context={
            "age": Number(18, 90),
            "visits": Number(1, 1000, log=True),
            "country": Category(["NL", "DE", "FR"]),
            "hour": Number(0, 24, cyclic=True),
            "vip": Flag(),
            "nowhere": Number(0, 1),
        },
        arm={
            "embedding": Vector(3),
            "price": Number(0, 100),
            "shelf": Category([1, 2, 3]),
        },
        dim=dim,
    )


@pytest.mark.parametrize("dim", ["exact", None])
@pytest.mark.parametrize(
    "frame",
    [
        lambda rows: pl.DataFrame(rows),
        lambda rows: pd.DataFrame(rows),
        lambda rows: pd.DataFrame(rows).convert_dtypes(),
        lambda rows: pa.Table.from_pylist(rows),
        lambda rows: pl.DataFrame(rows).with_columns(
            pl.col("country").cast(pl.Categorical), pl.col("embedding").list.to_array(3)
        ),
    ],
    ids=["polars", "pandas", "pandas-nullable", "arrow", "polars-typed"],
)
def test_a_frame_gives_the_numbers_of_its_rows(frame, dim, monkeypatch):
    features, rows, counts, counted = log_features(dim), lines(), Counter(), Counter()
    X = features.encode_frame(frame(rows), counted)
    for x, row in zip(X, rows):
        context = {k: v for k, v in row.items() if k in features.context}
        arm = {k: v for k, v in row.items() if k in features.arm}
        assert np.array_equal(features.encode(context, [arm], counts)[0], x)
    assert counts == counted
    sides = [
        [{k: v for k, v in row.items() if k in side} for row in rows]
        for side in (features.context, features.arm)
    ]
    assert np.array_equal(features.encode_pairs(*sides), X)
    menus = [sides[1][k : k + 1 + k % 3] for k in range(len(rows))]
    for x, context, arms in zip(features.encode_each(sides[0], menus), sides[0], menus):
        assert np.array_equal(x, features.encode(context, arms))
    assert {what for _, what in counts} == {"missing", "clipped", "unknown"}
    monkeypatch.setattr("driftbandit.features.plan.CHUNK", 500)
    assert np.array_equal(features.encode_frame(frame(rows)), X)


@pytest.mark.parametrize("contexts", [[], [{}, {}], {}, None])
def test_pairs_are_lists_of_the_same_length(contexts):
    with pytest.raises(ValueError, match="list of 1 mappings"):
        SHOP.encode_pairs(contexts, [{}])


def test_arms_may_be_a_frame():
    arms = [{"price": 9.0, "genre": "rock"}, {"price": 120.0, "genre": "folk"}]
    context = {"age": 31, "country": "NL"}
    X = SHOP.encode(context, arms)
    assert np.array_equal(SHOP.encode(context, pl.DataFrame(arms)), X)


# Missing, unknown, out of range


def test_what_is_odd_is_counted_and_nothing_else_is():
    counts = Counter()
    SHOP.encode({"age": 31, "country": "NL", "hour": 24}, [{"price": 100, "genre": "rock"}], counts)
    assert counts == {}
    arms = [{"price": 101}, {"price": math.nan, "genre": "folk"}, {"price": -1, "genre": None}]
    SHOP.encode({"country": "US", "hour": 25}, arms, counts)
    assert counts == {
        ("age", "missing"): 1,
        ("country", "unknown"): 1,
        ("hour", "clipped"): 1,
        ("price", "clipped"): 2,
        ("price", "missing"): 1,
        ("genre", "missing"): 2,
        ("genre", "unknown"): 1,
    }
    assert all(type(n) is int for n in counts.values())


def test_counts_are_a_mapping():
    counts = {("age", "missing"): 2}
    SHOP.encode({}, [{}], counts)
    assert counts["age", "missing"] == 3
    with pytest.raises(ValueError, match="must be a Counter"):
        SHOP.encode({}, [{}], 3)


def test_missing_has_many_spellings():
    X = SHOP.encode({}, [{}])
    for gone in (None, math.nan, np.nan, pd.NA, pd.NaT, np.float32("nan")):
        context = {"age": gone, "country": gone, "hour": gone}
        assert np.array_equal(SHOP.encode(context, [{"price": gone, "genre": gone}]), X)


def test_none_in_a_category_has_a_place_of_its_own():
    features = Features(arm={"genre": Category(["rock", None])})
    X = features.encode({}, [{"genre": None}, {"genre": math.nan}, {"genre": "folk"}])
    assert np.array_equal(X[0], X[1])
    assert not np.array_equal(X[0], X[2])
    assert features.terms == ("1", "genre=rock", "genre=None", "genre other")


def test_numbers_of_other_types_are_numbers():
    from decimal import Decimal
    from fractions import Fraction

    X = SHOP.encode({"age": 31}, [{"price": 9.0}])
    for nine in (9, np.float32(9), np.int16(9), np.uint64(9), Decimal(9), Fraction(9)):
        assert np.array_equal(SHOP.encode({"age": np.int8(31)}, [{"price": nine}]), X)
    shelf = Features(arm={"shelf": Category([1, 2])})
    hashed = Features(arm={"shelf": Category(size=9)})
    for one in (1, 1.0, np.int64(1), np.float64(1)):
        for features in (shelf, hashed):
            X = features.encode({}, [{"shelf": 1}])
            assert np.array_equal(features.encode({}, [{"shelf": one}]), X)


# Hashes


def test_hashes_never_change():
    assert stable("") == 0xB4B2797457A0A6E4  # BLAKE2b-64 of nothing, little-endian
    assert stable("country=NL") == 2522840944962163078
    assert bucket("user=ann", 32) == 16
    at, sign = fold(["1", "age", "age*price"], 64)
    assert (at.tolist(), sign.tolist()) == ([59, 45, 53], [1.0, -1.0, -1.0])
    assert SHOP.under(1).version == "9b7f7aac96da8e0e"  # as version 0.2 had it


ELSEWHERE = """
from driftbandit import Category, Features
features = Features(context={'u': Category(size=50)}, arm={'id': Category(size=40)})
rows = features.encode({'u': 'ann'}, [{'id': 7}, {'id': 'x'}]).tobytes().hex()
"""


def test_encoding_is_the_same_in_another_process():
    code, here = f"{ELSEWHERE}\nprint(features.version, rows)", {}
    exec(ELSEWHERE, here)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [here["features"].version, here["rows"]]


# Saying things


def test_folding_is_said_once_and_in_the_repr(caplog):
    with caplog.at_level(logging.INFO):
        features = Features(context={"u": Vector(20)}, arm={"v": Vector(5)})
        features.encode({"u": np.ones(20)}, [{"v": np.ones(5)}])
        features.encode({"u": np.ones(20)}, [{"v": np.ones(5)}])
    assert [r.name for r in caplog.records] == ["driftbandit.features"]
    assert "133 terms, without those of the context alone" in caplog.text
    assert "folded into 128 coordinates, of which 1, v have their own" in repr(features)
    assert "and u*v share 121 by hashing" in repr(features)
    assert "folded" not in repr(SHOP)
    assert Features(arm={"v": Vector(199)}, dim=256).size == 201


def test_a_problem_follows():
    assert SHOP.problem() == SHOP.problem(Bernoulli())
    assert SHOP.problem().dim == 90
    assert SHOP.under(1).problem().dim == 60

    class Reward:
        family = Gaussian()

    assert SHOP.problem(Reward()).family == Gaussian()
    with pytest.raises(ValueError, match="family such as"):
        SHOP.problem("clicks")


# Hostile input


@pytest.mark.parametrize(
    ("context", "arms", "words"),
    [
        ({"agee": 3}, [{}], "'agee'.*did you mean 'age'"),
        ({}, [{"prize": 3}], "'prize'.*did you mean 'price'"),
        ({3: 3}, [{}], "has 3, which is not declared"),
        ({"age": "31"}, [{}], "'age' must be a number, got '31'"),
        ({"age": True}, [{}], r"'age' must be a number.*Flag\(\)"),
        ({"age": math.inf}, [{}], "'age' must be a finite number"),
        ({"age": -math.inf}, [{}], "'age' must be a finite number"),
        ({"age": 10**400}, [{}], "'age' must be a number, got 1000"),
        ({"age": 1j}, [{}], "'age' must be a number"),
        ({"age": [1, 2]}, [{}], "'age' must be a number"),
        ({"age": np.eye(2)}, [{}], "'age' must be a number"),
        ({"age": {}}, [{}], "'age' must be a number"),
        ({"country": ["NL"]}, [{}], "'country' must be text or a whole number"),
        ({"country": {}}, [{}], "'country' must be text or a whole number"),
        ({"country": b"NL"}, [{}], "'country' must be text or a whole number"),
        ({}, [{}, {"price": "cheap"}], "'price' must be a number, got 'cheap'"),
        ({}, [{}, {"price": 10**400}], "'price' must be a number"),
        ({}, [{}, {"price": np.inf}], "'price' must be a finite"),
        ({}, [], "no arm"),
        ({}, {}, "no arm"),
        ({}, [3], "an arm must be a mapping"),
        ({}, {"price": 3}, "an arm must be a mapping"),
        ([("age", 3)], [{}], "the context must be a mapping"),
        (None, [{}], "the context must be a mapping"),
        ({}, "price", "arms .* must be a frame"),
        ({}, None, "arms .* must be a frame"),
        ({}, np.zeros((2, 2)), "arms .* must be a frame"),
        ({}, pl.LazyFrame({"price": [3]}), "in memory"),
        ({}, pl.DataFrame({"prize": [3]}), "did you mean 'price'"),
        ({}, pl.DataFrame({"price": ["3"]}), "'price' must be a number"),
        ({}, pl.DataFrame({"price": [True]}), "'price' must be a number"),
    ],
)
def test_bad_values_are_refused_in_the_name_of_their_column(context, arms, words):
    with pytest.raises(ValueError, match=words) as error:
        SHOP.encode(context, arms, counts := Counter())
    assert "\n" not in str(error.value)
    assert counts == {}  # nothing has changed


@pytest.mark.parametrize(
    ("feature", "value", "words"),
    [
        (Vector(3), [1, 2], "'x' must be 3 finite numbers, got an array of shape"),
        (Vector(3), np.zeros(10**6), "got an array of shape"),
        (Vector(3), [1, 2, math.nan], "'x' must be 3 finite numbers"),
        (Vector(3), [1, 2, math.inf], "'x' must be 3 finite numbers"),
        (Vector(3), ["1", "2", "3"], "'x' must be 3 finite numbers"),
        (Vector(3), [1, [2], 3], "'x' must be 3 finite numbers"),
        (Vector(3), "abc", "'x' must be 3 finite numbers"),
        (Vector(3), [True, False, True], "'x' must be 3 finite numbers"),
        (Vector(3), 7, "'x' must be 3 finite numbers"),
        (Vector(3, required=True), None, "'x' is missing"),
        (Flag(), 2, "'x' must be True or False"),
        (Flag(), "yes", "'x' must be True or False"),
        (Flag(), math.inf, "'x' must be True or False"),
        (Flag(required=True), None, "'x' is missing"),
        (Number(0, 1, required=True), math.nan, "'x' is missing"),
        (Number(0, 1, cyclic=True, required=True), None, "'x' is missing"),
        (Category(["rock"], required=True), None, "'x' is missing"),
        (Category(["rock"], required=True), "rok", "'x' must be one of.*did you mean 'rock'"),
        (Category(size=4, required=True), None, "'x' is missing"),
        (Category(size=4), {}, "'x' must be text"),
        pytest.param(Category(size=4), 10**5000, "'x' must be text", id="long"),
        pytest.param(Category([1]), 10**5000, "'x' must be text", id="long in a list"),
    ],
)
def test_bad_values_of_other_columns(feature, value, words):
    features = Features(arm={"x": feature})
    with pytest.raises(ValueError, match=words):
        features.encode({}, [{"x": value}])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Number(1, 1), "low < high"),
        (lambda: Number(2, 1), "low < high"),
        (lambda: Number("a", 1), "low must be a number"),
        (lambda: Number(0, math.inf), "high must be a number"),
        (lambda: Number(0, 9, log=True), "low above 0"),
        (lambda: Number(1, 9, log=True, cyclic=True), "cyclic or log"),
        (lambda: Number(0, 9, required="no"), "required must be"),
        (lambda: Number(1e50, math.nextafter(1e50, 1e51), log=True), "too close"),
        (lambda: Category(), "list of values, or size="),
        (lambda: Category(["a"], size=3), "list of values, or size="),
        (lambda: Category("abc"), "list of values"),
        (lambda: Category([]), "read differently"),
        (lambda: Category(["a", "a"]), "read differently"),
        (lambda: Category([1, "1"]), "read differently"),
        (lambda: Category([1.5]), "text or whole numbers"),
        (lambda: Category([True]), "use .*Flag"),
        (lambda: Category(size=0), "size must be"),
        (lambda: Vector(0), "size must be"),
        (lambda: Vector(2.5), "size must be"),
        (lambda: Vector(3, keep=4), "keep is at most size"),
        (lambda: Vector(10**9, keep=4), "keep is at most size"),
        (lambda: Vector(30, keep=0), "keep must be"),
        (lambda: Vector(30, projection="x"), "needs keep="),
        (lambda: Vector(30, keep=2, projection="00:AAAA"), "no projection from 30 to 2"),
        (lambda: Vector.fitted(np.ones((100, 4)), keep=2), "all the same"),
        (lambda: Vector.fitted(np.ones((10, 4)), keep=2), "a sample of 20 vectors"),
        (lambda: Vector.fitted([[1, 2], [3]], keep=2), "array of shape"),
        (lambda: Number(0, 1, curve=-1), "curve must be"),
        (lambda: Number(0, 1, curve="yes"), "curve must be"),
        (lambda: Number(0, 1, curve=99), "at most 32"),
        (lambda: Number(0, 1, cyclic=True, curve=True), "cyclic or curve"),
        (lambda: Category(size=3, room=2), "room= is for"),
        (lambda: Category(["a"], room=-1), "room must be"),
        (lambda: Features(arm={"a": Flag()}, encoding=4), "from 1 to 3"),
        (lambda: Features(arm={}), "all arms look the same"),
        (lambda: Features(arm=[Flag()]), "arm must be a mapping"),
        (lambda: Features(arm={"a": 3}), "'a' must be a Number"),
        (lambda: Features(arm={"a*b": Flag()}), "without '\\*'"),
        (lambda: Features(arm={3: Flag()}), "a column's name"),
        (lambda: Features(arm={"1": Flag()}), "a column's name"),
        (lambda: Features(context={"a": Flag()}, arm={"a": Flag()}), "for contexts and for arms"),
        (lambda: Features(arm={"a": Vector(10**9)}), "'a' has 1000000001 coordinates"),
        (
            lambda: Features(
                context={"c": Category([f"v{k}" for k in range(10**5)])}, arm={"a": Vector(20)}
            ),
            r"'c' has 100001 coordinates: hash it with Category\(size",
        ),
        (lambda: Features(arm={"a": Flag()}, dim="all"), "dim must be"),
        (lambda: Features(arm={"a": Flag()}, dim=1), "dim must be"),
        (lambda: Features(arm={"a": Flag()}, interactions="ab"), "list of pairs"),
        (lambda: Features(arm={"a": Flag()}, interactions=["ab"]), "is a pair"),
        (lambda: features_of(interactions=[("c", "x")]), "not declared"),
        (lambda: features_of(interactions=[("c", "c")]), "one of the arm"),
        (lambda: features_of(interactions=[("c", "a"), ("a", "c")]), "twice"),
        (lambda: features_of(base=3), "made by grow"),
        (lambda: features_of(base=SHOP), "use base.grow"),
    ],
)
def test_bad_declarations_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def features_of(**options):
    return Features(context={"c": Flag()}, arm={"a": Flag()}, **options)


def test_a_flag_is_not_blamed_for_a_number_that_is_too_large():
    features = Features(arm={"a": Flag(), "b": Number(0, 1)})
    with pytest.raises(ValueError, match="'b' must be a number"):
        features.encode({}, [{"a": True, "b": 10**400}])


def test_vectors_that_are_very_long_or_very_short_are_scaled_too():
    features = Features(arm={"v": Vector(2)})
    X = features.encode({}, [{"v": [3.0, 4.0]}])
    for size in (1e-320, 1e-300, 1e300):
        assert np.allclose(features.encode({}, [{"v": [3.0 * size, 4.0 * size]}]), X, rtol=1e-3)
    assert features.encode({}, [{"v": [0, 0]}])[0, 1:].tolist() == [0.0, 0.0, 0.0]


def test_a_frame_without_rows_gives_none():
    frame = pl.DataFrame(lines())
    assert log_features(None).encode_frame(frame.head(0)).shape == (0, 128)


def test_theta_must_fit():
    with pytest.raises(ValueError, match=r"shape \(90,\)"):
        SHOP.contributions({}, {}, np.zeros(3))


def test_a_declaration_cannot_be_changed():
    with pytest.raises(TypeError):
        SHOP.context["new"] = Flag()
    mine = {"a": Flag()}
    features = Features(arm=mine)
    mine["b"] = Flag()
    assert features.columns == ("a",)


def test_inputs_are_left_alone():
    vector = np.array([3.0, 4.0])
    features = Features(arm={"v": Vector(2), "x": Number(0, 1)})
    frame = pl.DataFrame({"v": [[3.0, 4.0]], "x": [5.0]})
    features.encode({}, [{"v": vector, "x": 5}])
    features.encode({}, frame)
    assert vector.tolist() == [3.0, 4.0]
    assert frame["x"].to_list() == [5.0]


def test_a_category_of_many_values_works_where_it_fits():
    features = Features(arm={"id": Category([f"v{k}" for k in range(10**5)])})
    assert features.folded
    assert features.encode({}, [{"id": "v99999"}]).any()


# Proposals


def test_a_proposal_says_why():
    rng, said = np.random.default_rng(0), []
    n = 2000
    frame = pl.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "income": np.exp(rng.normal(8, 2, n)),
            "country": rng.choice(["NL", "DE", "FR", "zz"], n, p=[0.5, 0.3, 0.195, 0.005]),
            "pickup_hour": rng.integers(0, 24, n),
            "weekday": rng.integers(1, 8, n),
            "month": rng.integers(1, 12, n),
            "mobile": rng.integers(0, 2, n),
            "vip": rng.random(n) < 0.5,
            "user_id": rng.integers(0, 10**6, n),
            "same": np.ones(n),
            "empty": [None] * n,
            "when": [None] * (n - 1) + [__import__("datetime").datetime(2024, 1, 1)],
            "embedding": rng.standard_normal((n, 3)).tolist(),
            "tags": [["new"]] * n,
            "ragged": [[1.0] * (1 + k % 2) for k in range(n)],
            "far": np.linspace(0, 1e200, n),
            "price": rng.uniform(0, 80, n),
        }
    )
    features = Features.from_sample(frame, arm=["price", "embedding"], report=said.append)
    c = features.context
    assert list(features.arm) == ["price", "embedding"]
    assert features.arm["embedding"] == Vector(3)
    assert features.arm["price"].low == pytest.approx(0.0, abs=0.1)
    assert features.arm["price"].high == 80.0
    assert c["income"].log
    assert not c["age"].log
    assert c["country"] == Category(["NL", "DE", "FR"])
    assert c["pickup_hour"] == Number(0, 24, cyclic=True)
    assert c["weekday"] == Number(1, 8, cyclic=True)
    assert c["month"] == Number(1, 13, cyclic=True)
    assert c["mobile"] == c["vip"] == Flag()
    assert c["user_id"] == Category(size=16)
    assert not {"same", "empty", "when", "tags", "ragged", "far"} & set(features.columns)
    assert len(said) == len(frame.columns)
    assert "same: left out, because it never changes" in said
    assert features.encode_frame(frame.select(features.columns)).shape == (n, 128)


@pytest.mark.parametrize(
    ("arm", "words"),
    [((), "say which columns"), ("price", "say which"), (["prize"], "did you mean 'price'")],
)
def test_a_proposal_needs_to_know_the_arms(arm, words):
    with pytest.raises(ValueError, match=words):
        Features.from_sample(pl.DataFrame({"price": [1.0, 2.0]}), arm=arm)


def test_a_proposal_from_useless_arms_is_refused():
    with pytest.raises(ValueError, match="no column of the arms"):
        Features.from_sample(pl.DataFrame({"price": [1.0, 1.0]}), arm=["price"])


def test_a_proposal_from_outliers_and_zeros():
    rng = np.random.default_rng(1)
    age = np.append(rng.normal(40, 10, 1000), [1e6])
    views = np.append(np.exp(rng.normal(3, 3, 800)), np.zeros(201))
    features = Features.from_sample(pl.DataFrame({"age": age, "views": views}), arm=["views"])
    assert features.context["age"].high < 100
    assert features.arm["views"].log


def test_declaring_and_encoding_load_neither_compilers_nor_frames():
    code = (
        "from driftbandit import Features, Flag; import sys; "
        "Features(arm={'a': Flag()}).encode({}, [{}]); "
        "print({'numba', 'narwhals', 'pandas', 'polars', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# What a declaration can say


def test_a_number_of_an_arm_is_a_curve_unless_it_says_otherwise():
    assert SHOP.arm["price"] == Number(0, 100, curve=True) == Number(0, 100, curve=4)
    assert SHOP.context["age"] == Number(18, 90)
    assert SHOP.context["age"].width == 2
    line = Features(arm={"price": Number(0, 100, curve=False)})
    assert line.terms == ("1", "price", "price missing")
    for high, log in ((49, False), (50, True), (128, True)):
        (batch,) = Features(arm={"batch": Number(1, high)}).arm.values()
        assert batch == Number(1, high, curve=4, log=log)
    for said in (Number(1, 128, curve=4), Number(1, 128, curve=False), Number(0, 128, curve=4)):
        assert Features(arm={"batch": said}).arm["batch"] == said
    told = Features(context={"load": Number(1, 128)}, arm={"batch": Number(0, 1)})
    assert told.context["load"] == Number(1, 128, log=False)
    hour = Features(arm={"hour": Number(0, 24, cyclic=True)})
    assert hour.terms == ("1", "hour cos", "hour sin", "hour missing")


def test_a_scale_that_is_not_said_differs_from_a_plain_one():
    """What is not said is decided when features are declared, and stored."""
    said, unsaid = Number(1, 128, log=False), Number(1, 128)
    assert said != unsaid
    assert [eval(repr(each)) for each in (said, unsaid)] == [said, unsaid]
    assert [Recipe.from_dict(each.to_dict()) for each in (said, unsaid)] == [said, unsaid]
    assert [copy.copy(each) for each in (said, unsaid)] == [said, unsaid]
    plain, chosen = (Features(arm={"batch": each}) for each in (said, unsaid))
    assert plain.arm["batch"] == Number(1, 128, curve=4)
    assert chosen.arm["batch"] == Number(1, 128, curve=4, log=True)
    rows = [f.encode({}, [{"batch": 64.5}])[0, 1] for f in (plain, chosen)]
    assert rows[0] == 0.0 < rows[1]  # the middle is 64.5 on a plain scale
    for each in (said, unsaid):  # a number of a context was a plain line, and is one
        stored = Features(context={"load": each}, arm={"a": Flag()}).to_dict()["context"]["load"]
        assert stored == {
            "type": "Number",
            "low": 1.0,
            "high": 128.0,
            "cyclic": False,
            "log": False,
            "required": False,
        }
    written = {"type": "Number", "low": 1, "high": 128}  # JSON of another program
    assert Recipe.from_dict(written) == unsaid
    assert Recipe.from_dict(written | {"log": None}) == unsaid
    assert Recipe.from_dict(written | {"log": False}) == said
    assert Features(arm={"batch": unsaid}).under(1) == Features(arm={"batch": said}).under(1)


def test_what_version_0_2_stored_means_what_it_meant():
    stored = {
        "type": "Features",
        "context": {},
        "arm": {
            "price": {
                "type": "Number",
                "low": 0.0,
                "high": 100.0,
                "cyclic": False,
                "log": False,
                "required": False,
            }
        },
        "interactions": None,
        "dim": None,
        "base": None,
    }
    old = Recipe.from_dict(stored)
    assert old.to_dict() == stored
    assert old.terms == ("1", "price", "price missing")
    assert old.limit == 64
    assert old == Features(arm={"price": Number(0, 100)}).under(1)
    wide = stored["arm"]["price"] | {"low": 1.0}
    assert Recipe.from_dict(stored | {"arm": {"price": wide}}) == Features(
        arm={"price": Number(1, 100)}
    ).under(1)
    assert old.grow(arm={"age": Number(0, 9)}).terms[3:] == ("age", "age missing")


def test_curves_of_the_encoding_before_are_waves():
    """What was declared before curves were a line and bends keeps its numbers and names."""
    stored = {
        "type": "Features",
        "context": {},
        "arm": {"price": {**Number(0, 100, required=True, log=False).to_dict(), "curve": 5}},
        "interactions": None,
        "dim": 128,
        "base": None,
        "encoding": 2,
    }
    old = Recipe.from_dict(stored)
    assert old.to_dict() == stored
    assert old == Features(arm={"price": Number(0, 100, required=True)}).under(2)
    assert old.terms == ("1", *(f"price wave {k}" for k in range(1, 6)))
    heights = np.cos(0.3 * np.pi * np.arange(1, 6)) / np.arange(1, 6)
    row = np.append(1.0, heights / math.sqrt(sum(1 / k**2 for k in range(1, 6)))) / math.sqrt(2)
    assert np.allclose(old.encode({}, [{"price": 30}])[0], row, rtol=0, atol=1e-15)
    assert old.grow(arm={"age": Number(0, 9)}).terms[6] == "age wave 1"


def test_a_curve_is_the_line_and_bends_that_are_zero_at_both_ends():
    line, curve = (
        Features(arm={"price": Number(0, 100, required=True, curve=n)}) for n in (False, 8)
    )
    prices = [{"price": float(price)} for price in np.linspace(0, 100, 201)]
    X, bent = line.encode({}, prices), curve.encode({}, prices)
    assert np.array_equal(bent[:, :2], X)  # what is learnt of a line needs no bend
    assert np.allclose(bent[[0, -1], 2:], 0.0, atol=1e-15)
    assert np.linalg.norm(bent, axis=1).max() == pytest.approx(1.0, abs=1e-12)


def test_the_largest_of_many_values_may_lie_inside():
    features = Features(arm={"price": Number(0, 10, required=True)})
    X = features.encode({}, [{"price": p} for p in np.linspace(0, 10, 41)])
    hump = np.exp(-((np.linspace(0, 10, 41) - 4) ** 2) / 8)
    theta = np.linalg.lstsq(X, hump, rcond=None)[0]
    assert np.argmax(X @ theta) == pytest.approx(16, abs=1)


def test_new_values_have_room():
    features = Features(arm={"id": Category(["a", "b"], room=4)})
    assert features.terms[1:] == ("id=a", "id=b", "id#0", "id#1", "id#2", "id#3", "id other")
    new = [{"id": f"new {k}"} for k in range(200)]
    X = features.encode({}, [{"id": "a"}, *new, {}])
    assert (X[1:-1, 3:7] > 0).sum(axis=1).tolist() == [1] * 200
    assert X[-1, 7] > 0
    alone = [(X[1:-1] == X[k]).all(axis=1).sum() == 1 for k in range(1, 201)]
    assert not any(alone)
    assert features.arm["id"].shared(200) == pytest.approx(1 - 0.75**199)


def test_the_stated_rate_of_sharing_is_that_of_the_hash():
    column, n = Category(size=50), 10
    shared = []
    for trial in range(300):
        at = [bucket(f"id={trial} {k}", 50) for k in range(n)]
        shared += [Counter(at)[each] > 1 for each in at]
    assert np.mean(shared) == pytest.approx(column.shared(n), abs=0.03)


def test_a_fitted_projection_keeps_what_varies():
    rng = np.random.default_rng(3)
    parts = rng.normal(size=(400, 2)) * [3.0, 1.0]
    sample = parts @ np.linalg.qr(rng.normal(size=(60, 2)))[0].T + 0.01 * rng.normal(size=(400, 60))
    column = Vector.fitted(sample + 0.2, keep=2)
    rows = column.encoded(sample + 0.2)
    unit = (sample + 0.2) / np.linalg.norm(sample + 0.2, axis=1)[:, None]
    best = np.linalg.svd(unit - unit.mean(axis=0), full_matrices=False)[0][:, :2]
    lost = rows - best @ (best.T @ rows)  # what the two main components do not explain
    short = np.linalg.norm(rows, axis=1) < 1.0 - 1e-9
    assert np.abs(lost[short]).max() < 0.1
    assert 0.9 < short.mean() < 0.98
    again = Recipe.from_dict(json.loads(json.dumps(column.to_dict())))
    assert again == column
    assert np.array_equal(again.encoded(sample), column.encoded(sample))
    damaged = column.projection[:-8] + "AAAAAAAA"
    with pytest.raises(ValueError, match="damaged"):
        Vector(60, keep=2, projection=damaged)


def test_a_random_projection_keeps_inner_products_roughly():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(200, 384))
    kept = Vector(384, keep=64).encoded(rows)
    unit = rows / np.linalg.norm(rows, axis=1)[:, None]
    near = np.abs(kept @ kept.T - unit @ unit.T)
    assert near.mean() < 0.15
    assert np.linalg.norm(kept, axis=1).max() <= 1.0 + 1e-12


def test_a_long_vector_is_proposed_with_a_projection():
    rng, said = np.random.default_rng(1), []
    frame = pl.DataFrame({"v": rng.normal(size=(300, 100)).tolist(), "id": ["a", "b"] * 150})
    features = Features.from_sample(frame, arm=["id"], report=said.append)
    assert features.context["v"].keep == 24
    assert "keeps" in said[0]
    assert features.size == 104
