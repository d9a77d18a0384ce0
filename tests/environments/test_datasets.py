"""Datasets: recipes, places, checksums; on tiny files with the columns of the real ones."""

import gzip
import hashlib
import sys
import zipfile

import numpy as np
import pytest

import tiny
from driftbandit import datasets
from driftbandit.datasets import files, logs, recipes, rounds, streams

SHAPES = {"elec2": (200, 2, 18), "weather": (200, 2, 18), "bike": (257, 3, 48)}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    tiny.write(tmp_path)
    monkeypatch.setenv("DRIFTBANDIT_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", SHAPES)
def test_a_stream_of_classes(name):
    data = datasets.load(name, start=500)
    T, N, d = SHAPES[name]
    assert data.arms.shape == (T, N, d)
    assert data.rewards.shape == (T, N)
    assert len(data.features) == len(set(data.features)) == d
    np.testing.assert_array_equal(data.rewards.sum(axis=1), 1.0)  # one class is true
    blocks = data.arms.reshape(T, N, N, d // N)
    for k in range(N):
        np.testing.assert_array_equal(np.delete(blocks[:, k], k, axis=1), 0.0)
        np.testing.assert_array_equal(blocks[:, k, k], blocks[:, 0, 0])
    norms = np.linalg.norm(data.arms, axis=2)
    assert norms.max() <= 1 + 1e-12
    assert norms.min() > 0.01
    with pytest.raises(ValueError, match="read-only"):
        data.arms[0] = 0.0


def test_flights_offers_ten_of_a_day_to_a_city():
    data = datasets.load("flights", start=50)
    assert data.arms.shape == (60 * 4 - 50, 10, 17)
    assert set(np.unique(data.rewards)) == {0.0, 1.0}
    assert data.features[:2] == ("UA", "B6")
    assert (np.diff(data.times) >= np.timedelta64(0, "D")).all()
    table = files.read(streams.STREAMS["flights"].source)
    tens = recipes.tens(table)
    assert len(np.unique(tens)) == tens.size  # no flight twice
    place = np.array([[table[n][k] for n in ("month", "day", "dest")] for k in tens.ravel()])
    groups = place.reshape(-1, 10, 3)
    assert (groups == groups[:, :1]).all()
    assert "XNA" not in groups


def test_features_are_scores_by_the_past_alone():
    """Against plain formulas, row by row; and another future changes no earlier context."""
    rng = np.random.default_rng(0)
    raw = rng.standard_normal((700, 1, 3)) * [1.0, 5.0, 0.0] + [2.0, 0.0, 7.0]
    raw[650:, 0, 2] = 9.0  # a feature that begins to move later
    x = rounds.contexts(raw, 600)
    before = raw[100:600, 0]
    scores = lambda row: np.append(  # noqa: E731
        np.clip((row - before.mean(0)) / [before[:, 0].std(), before[:, 1].std(), 1.0], -3, 3), 1.0
    )
    longest = np.quantile([np.linalg.norm(scores(row)) for row in before], 0.95)
    for t in (0, 49, 50, 99):
        expected = scores(raw[600 + t, 0]) / longest
        expected /= max(1.0, np.linalg.norm(expected))
        np.testing.assert_allclose(x[t, 0], expected, rtol=1e-12)
    other = raw.copy()
    other[650:] += 100.0
    np.testing.assert_array_equal(rounds.contexts(other, 600)[:50], x[:50])


def test_bike_leaves_padded_hours_out_and_reads_both_kinds_of_dates(folder):
    plain = datasets.load("bike", start=500)
    assert plain.times[0] == np.datetime64("2011-01-21T23")  # three of the 503 hours are padded
    text = tiny.bike(padded=(30, 51, 52))
    lines = [line.split(",") for line in text.splitlines()]
    for line in lines[1:]:
        year, month, day = line[1].split("-")
        line[1] = f"{int(month)}/{int(day)}/{year[2:]}"
    (folder / "other.csv").write_text("\n".join(",".join(line) for line in lines) + "\n")
    other = datasets.load("bike", start=500, path=folder / "other.csv")
    np.testing.assert_array_equal(other.times, plain.times)
    np.testing.assert_array_equal(other.arms, plain.arms)


def test_columns_of_electricity_may_be_unnamed(folder):
    rest = tiny.elec().splitlines()[1:]
    names = [*(f"feat_{k}" for k in range(1, 7)), "target"]
    (folder / "unnamed.csv").write_text("\n".join([",".join(names), *rest]) + "\n")
    unnamed = datasets.load("elec2", start=500, path=folder / "unnamed.csv")
    np.testing.assert_array_equal(unnamed.arms, datasets.load("elec2", start=500).arms)


def test_the_checksum_is_that_of_the_csv_file_compressed_or_not(folder):
    text = tiny.weather().encode()
    (folder / "plain.csv").write_bytes(text)
    plain = datasets.load("weather", start=500, path=folder / "plain.csv")
    packed = datasets.load("weather", start=500)
    assert plain.checksum == packed.checksum == hashlib.sha256(text).hexdigest()
    assert plain.licence
    assert plain.source.startswith("https://")


@pytest.mark.parametrize("start", [499, 700, -1, 2.5])
def test_start_leaves_rows_to_learn_the_scale_from(start):
    with pytest.raises(ValueError, match="start"):
        datasets.load("elec2", start=start)


def test_wrong_names_places_and_files(folder, monkeypatch):
    with pytest.raises(ValueError, match="known are elec2, weather, bike, flights"):
        datasets.load("elec")
    with pytest.raises(ValueError, match="no folder that holds elec"):
        datasets.load("elec2", path=folder / "nowhere")
    (folder / "cut.csv").write_text(tiny.elec()[:-20])
    with pytest.raises(ValueError, match="cut off"):
        datasets.load("elec2", path=folder / "cut.csv")
    (folder / "broken.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n")[:-3])
    with pytest.raises(ValueError, match="fetch it again"):
        datasets.load("elec2", path=folder / "broken.csv.gz")
    with pytest.raises(ValueError, match="no column 'feat_1'"):
        datasets.load("weather", path=folder / "bike-hour.csv")
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    monkeypatch.delenv("DRIFTBANDIT_DATA")
    with pytest.raises(ValueError, match=r"pip install 'driftbandit\[data\]'"):
        datasets.load("flights", start=60)


def served(monkeypatch, tmp_path, content, sha256):
    """A download of this content, from a file instead of the internet."""
    import pooch

    place = tmp_path / "server"
    place.mkdir()
    (place / "weather.csv").write_bytes(content)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.delenv("DRIFTBANDIT_DATA")

    class Copy:
        def __call__(self, url, output_file, pooch):
            with open(output_file, "wb") as file:
                file.write((place / "weather.csv").read_bytes())

    real = pooch.retrieve
    monkeypatch.setattr(pooch, "retrieve", lambda *a: real(*a, downloader=Copy()))
    return files.DataSource(("weather.csv",), "https://example.org/weather.csv", "none", sha256)


def test_a_download_is_kept_and_checked(monkeypatch, tmp_path):
    content = tiny.weather().encode()
    source = served(monkeypatch, tmp_path, content, hashlib.sha256(content).hexdigest())
    first = files.read(source)
    (tmp_path / "server" / "weather.csv").write_bytes(b"changed")
    assert files.read(source) == first  # from the cache


def test_a_download_that_is_not_the_tested_file_says_so(monkeypatch, tmp_path):
    source = served(monkeypatch, tmp_path, b"other", "0" * 64)
    with pytest.raises(ValueError, match=r"is not the file that was tested.*DRIFTBANDIT_DATA"):
        files.read(source)


def test_no_internet_says_what_to_do(monkeypatch, tmp_path):
    import pooch

    source = served(monkeypatch, tmp_path, b"", None)
    monkeypatch.setattr(pooch, "retrieve", lambda *a: (_ for _ in ()).throw(OSError("no route")))
    with pytest.raises(ValueError, match=r"cannot be fetched.*DRIFTBANDIT_DATA"):
        files.read(source)


def test_without_pooch_the_remedy_is_named(monkeypatch):
    monkeypatch.delenv("DRIFTBANDIT_DATA")
    monkeypatch.setitem(sys.modules, "pooch", None)
    for ask in (lambda: datasets.load("weather", start=501), datasets.open_bandit):
        with pytest.raises(ValueError, match=r"needs pooch: pip install 'driftbandit\[data\]'"):
            ask()


def test_a_log_in_order_of_time_from_a_folder_or_a_wheel(folder):
    place = tiny.open_bandit(folder)
    log = datasets.open_bandit("random", "men", path=place)
    assert log.context.shape == (30, 5)
    assert (np.diff(log.times) > np.timedelta64(0)).all()
    np.testing.assert_array_equal(log.action, np.arange(30) % 4)
    np.testing.assert_array_equal(log.position, np.arange(30) % 3)
    np.testing.assert_array_equal(np.flatnonzero(log.reward), [0, 10, 20])
    np.testing.assert_array_equal(log.pscore, 0.25)
    np.testing.assert_array_equal(log.context.sum(axis=1), 2.0)
    assert log.items.shape == (4, 3)
    assert log.affinity.shape == (30, 4)
    with zipfile.ZipFile(folder / "obp.whl", "w") as wheel:
        for path in place.rglob("*.csv"):
            wheel.write(path, f"{logs.INSIDE}/{path.relative_to(place)}")
    again = datasets.open_bandit("random", "men", path=folder / "obp.whl")
    np.testing.assert_array_equal(again.context, log.context)
    np.testing.assert_array_equal(datasets.open_bandit("random", "men").context, log.context)
    with pytest.raises(ValueError, match="policy must be one of random, bts"):
        datasets.open_bandit("uniform")
