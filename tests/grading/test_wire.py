"""Plain data crosses unchanged, and nothing but plain data crosses."""

import collections
import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from grading.inside import wire

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(), st.binary())
ARRAYS = hnp.arrays(
    st.one_of(hnp.boolean_dtypes(), hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(),
              hnp.complex_number_dtypes()), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
VALUES = st.recursive(
    st.one_of(SCALARS, ARRAYS),
    lambda inner: st.one_of(st.lists(inner), st.tuples(inner, inner), st.dictionaries(st.text(), inner)), max_leaves=12)


def crossed(value, **how):
    tree, buffers = wire.encode(value, how.get("refer"))
    return wire.decode(json.loads(json.dumps(tree)), buffers, how.get("resolve"))


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return repr(a) == repr(b)  # nan, -0.0


@settings(deadline=None, max_examples=200)
@given(VALUES)
def test_values_cross_unchanged(value):
    assert same(crossed(value), value)


@pytest.mark.parametrize("value", [
    {(1, "a"): {2, 3}}, frozenset("ab"), collections.Counter("aab"), range(1, 9, 2), slice(None, 3), ..., np.float32,
    np.dtype("int8"), np.float32(1.5), np.array(["猫", "狗狗"]), 2**200, -(2**53) - 1])
def test_rarer_values_cross(value):
    back = crossed(value)
    assert type(back) is type(value) and np.array_equal(back, value) if isinstance(value, np.ndarray) else back == value


@pytest.mark.parametrize("kind", sorted(wire.GENERATORS))
def test_generators_cross_with_their_state(kind):
    generator = np.random.Generator(getattr(np.random, kind)(7))
    generator.normal(size=5)
    twin = crossed(generator)
    assert (generator.integers(0, 2**60, 9) == twin.integers(0, 2**60, 9)).all()


def test_subclasses_arrive_as_what_they_hold():
    class Always(np.ndarray):
        def __eq__(self, other):
            return True

    class Liar(float):
        def __eq__(self, other):
            return True

    class Chosen(dict):
        def __contains__(self, key):
            return True

    for value, kind in ((np.zeros(3).view(Always), np.ndarray), (Liar(2), float), (Chosen(a=1), dict),
                        (collections.namedtuple("P", "x")(1), tuple)):
        assert type(crossed(value)) is kind


def test_arrays_are_copies():
    array = np.arange(3.0)
    tree, buffers = wire.encode(array)
    array[:] = 9
    back = wire.decode(tree, buffers)
    assert back.tolist() == [0, 1, 2] and back.flags.writeable


def circles():
    """Things that hold themselves, and other shapes without an end."""
    ring, table, array = [], {}, np.empty(1, object)
    ring.append(ring)
    table["x"] = [table]
    array[0] = array
    return [ring, table, array, np.array([[ring]], object)]


@pytest.mark.parametrize("value", [*circles(), np.zeros(3, "f8,i4"), np.array("2026-01-01", "datetime64[D]"), np.array(None),
                                   np.zeros((), "V4"), np.zeros(2, "U1").view("V4")], ids=lambda v: type(v).__name__)
def test_what_has_no_end_or_no_plain_numbers_is_refused_or_named(value):
    try:
        tree, buffers = wire.encode(value, lambda x: ["o", 0])
    except (wire.NotPlain, RecursionError):
        return
    assert isinstance(value, np.ndarray) and wire.decode(tree, buffers, lambda tree: "named").dtype == object


@pytest.mark.parametrize("value", [object(), lambda: 0, open, np.array([object()]), [{"a": object()}]])
def test_objects_do_not_cross(value):
    with pytest.raises(wire.NotPlain):
        wire.encode(value)


@pytest.mark.parametrize("tree", [
    {}, [], ["?"], [1, 2], ["a"], ["a", 0, "O", [1], False], ["a", 0, "<f8", [99], False], ["a", 5, "<f8", [1], False],
    ["a", -1, "<f8", [1], False], ["a", 0, "<f8", [-1, -1], False], ["a", 0, "|V8", [1], False], ["f", "xyz"], ["f", 3],
    ["g", ["d", [["bit_generator", "os"]]]], ["d", [[["l", []], 1]]], ["s", [["l", []]]], ["l"], ["l", 3], ["o", 1],
    ["D", "|O"], ["i", "zz"], ["r", "a"], ["S", 1, 2, 3, 4], ["r", 0, 1, 0], ["a", 1, "<f8", [0, 2**40], False],
    ["a", 1, "<f8", [0, 2**33, 2**33], False], ["O", [0, 2**40], []], ["a", 1, "<f8", [-1], False]])
def test_forged_trees_are_refused(tree):
    with pytest.raises(wire.NotPlain):
        wire.decode(tree, [b"\0" * 8, b""])


@pytest.mark.parametrize(("kind", "change"), [("MT19937", {"pos": 10**6}), ("MT19937", {"pos": -9}), ("Philox", {"buffer_pos": -50})])
def test_no_generator_reads_memory_that_is_not_its_own(kind, change):
    """NumPy believes the position in a state; drawing from a made-up one would show, or crash, the trusted process."""
    state = getattr(np.random, kind)(1).state
    (state["state"] if kind == "MT19937" else state).update(change)
    tree, buffers = wire.encode(state)
    with pytest.raises(wire.NotPlain):
        wire.decode(["g", tree], buffers)
    named = wire.encode(np.random.Generator(getattr(np.random, kind)(1)), lambda x: ["o", 1])
    assert named == (["o", 1], [])


def test_truths_are_zero_or_one():
    array = wire.decode(["a", 0, "|b1", [4], False], [b"\0\1\2\xc8"])
    assert array.sum() == 3 and array.view(np.uint8).max() == 1 and array.dtype == bool


def test_a_pickle_is_just_bytes():
    class Boom:
        def __reduce__(self):
            return print, ("ran",)

    data = pickle.dumps([print])
    assert crossed(data) == data
    with pytest.raises(wire.NotPlain):
        wire.encode(Boom())


def test_size_depth_and_number_are_bounded():
    with pytest.raises(wire.NotPlain):
        wire.encode(np.zeros(wire.MAX_BYTES // 8 + 1))
    nested = []
    for _ in range(wire.MAX_DEPTH + 2):
        nested = [nested]
    with pytest.raises(wire.NotPlain):
        wire.encode(nested)
    tree = 0
    for _ in range(500):
        tree = ["l", [tree]]
    with pytest.raises(wire.NotPlain):
        wire.decode(tree, [])
    with pytest.raises(wire.NotPlain):
        wire.decode(["l", [0] * (wire.MAX_NODES + 1)], [])
    with pytest.raises(wire.NotPlain):
        wire.decode(["b", 0], [b"\0" * (wire.MAX_BYTES + 1)])
