"""A small shop that logs are made of: three prices, and who is asked."""

from driftbandit import Category, Features, Number

FEATURES = Features(
    context={"age": Number(18, 90), "country": Category(["NL", "DE"])},
    arm={"price": Number(0, 100)},
)
ARMS = {"a": {"price": 9}, "b": {"price": 50}, "c": {"price": 80}}
