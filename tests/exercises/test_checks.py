"""The check interface itself: what is believed of a result, what a message says, and where the inputs come from."""

import collections
import contextlib

import numpy as np
import pytest

from grading import checks, mutants
from grading.checks import Callback, CheckFailure, RemoteFunction
from grading.plain import NotPlain, code, copied, difference


class AlwaysEqual:
    def __eq__(self, other):
        return True

    __hash__ = None


class Lying(np.ndarray):
    """An array whose every comparison pretends to agree."""

    def __array_function__(self, function, types, args, kwargs):
        return True

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return True


def make(body, function="double", name="values"):
    return checks.Check("none", function, name, "结果是两倍", "乘以 2", "1.1", body)


def run(body, function):
    return checks.run(make(body), function)


def doubled(student, rng):
    student(np.array([1.0, 2.5])).equals(np.array([2.0, 5.0]))


def test_right_result_passes():
    run(doubled, lambda x: 2 * x)


@pytest.mark.parametrize("wrong, part", [
    (lambda x: 3 * x, "应为 5，得到 7.5"),
    (lambda x: None, "忘了 return"),
    (lambda x: 2 * x[:1], "形状应为 [2]，得到 [1]"),
    (lambda x: [2.0, 5.0], "应返回 NumPy 数组，得到 list"),
    (lambda x: AlwaysEqual(), "AlwaysEqual"),
    (lambda x: np.array([7.0, 7.0]).view(Lying), "Lying"),
    (lambda x: np.array([AlwaysEqual()] * 2), "dtype 为 object"),
    (lambda x: 1 / 0, "ZeroDivisionError"),
], ids=["value", "none", "shape", "list", "object", "subclass", "objects", "error"])
def test_wrong_result_is_named(wrong, part):
    with pytest.raises(CheckFailure) as failure:
        run(doubled, wrong)
    text = str(failure.value)
    assert part in text
    assert text.startswith("【double · values】结果是两倍")
    assert "调用：double(np.array([1.0, 2.5]))" in text
    of_types = {"忘了 return": "算出来的结果要 return", "应返回 NumPy 数组，得到 list": "用 np.array(…) 包起来"}
    assert f"提示：{of_types.get(part, '乘以 2，见 1.1')}" in text


def test_call_in_a_message_can_be_pasted():
    values = [np.array([[0.1, -np.inf], [np.nan, 2.0]]), np.array([2.1, -0.3], np.float32), np.array([True, False]), 0.5, "我", [1, 2], (3,),
              {"W": np.ones(2), ("a", "b"): 1}, [(np.zeros(1), 2)]]
    for value in values:
        back = eval(code(value), {"np": np})
        assert difference(value, back, 0, 0) is None and type(back) is type(value)
        assert getattr(back, "dtype", None) == getattr(value, "dtype", None)


def test_arguments_are_protected_and_watched():
    def body(student, rng):
        x = np.array([1.0])
        student(x).equals(x)
        assert x[0] == 1.0
        student(x).keeps_arguments()

    def in_place(x):
        x += 1
        return x - 1

    with pytest.raises(CheckFailure, match="第 1 个参数变了"):
        run(body, in_place)


def test_errors_can_be_asked_for():
    def body(student, rng):
        student(-1).raises(ValueError)

    def refuse(x):
        raise ValueError("负数")

    run(body, refuse)
    with pytest.raises(CheckFailure, match="应拒绝"):
        run(body, lambda x: x)
    with pytest.raises(CheckFailure, match="应抛出 ValueError，却抛出 KeyError"):
        run(body, lambda x: {}[x])


def test_a_structure_that_cannot_be_taken_apart_is_the_students_failure():
    def body(student, rng):
        first, second = student(1).value
        student(first).equals(second)

    with pytest.raises(CheckFailure, match="返回值的结构不对(.|\n)*得到：5"):
        run(body, lambda x: 5)
    with pytest.raises(CheckFailure, match="忘了 return"):
        run(body, lambda x: None)


def test_what_does_not_satisfy_is_shown():
    def body(student, rng):
        student(3).satisfies(lambda result: result == 6, "应是两倍")

    run(body, lambda x: 2 * x)
    with pytest.raises(CheckFailure, match="应是两倍(.|\n)*得到：9"):
        run(body, lambda x: 3 * x)
    with pytest.raises(CheckFailure, match="忘了 return(.|\n)*print 只是显示"):
        run(body, print)


def test_a_broken_check_is_not_the_students_failure():
    with pytest.raises(ZeroDivisionError):
        run(lambda student, rng: 1 / 0, lambda x: x)


def test_dtype():
    def body(student, rng):
        student(np.ones(2, np.float32)).has_dtype(np.float32)

    run(body, lambda x: (x, x))
    with pytest.raises(CheckFailure, match="dtype 应为 float32，得到 float64"):
        run(body, lambda x: x * np.float64(2))


class Elsewhere(RemoteFunction):
    """Stands for another process: only plain copies come and go."""

    def __init__(self, function):
        self.function = function

    def invoke(self, args, kwargs):
        args, kwargs = copied(args), copied(kwargs)
        return copied(self.function(*args, **kwargs)), args, kwargs


def test_remote_functions_are_checked_alike():
    def body(student, rng):
        student(np.array([1.0])).equals(np.array([2.0])).keeps_arguments()

    def in_place(x):
        x *= 2
        return x

    run(body, Elsewhere(lambda x: 2 * x))
    with pytest.raises(CheckFailure, match="参数变了"):
        run(body, Elsewhere(in_place))


def test_callbacks_are_plain_and_callable():
    halve = Callback("lambda x: x / by", by=2.0)
    assert halve(5) == 2.5
    assert copied([halve])[0] is halve
    assert eval(code(halve).split("  # ")[0], {"by": 2.0})(5) == 2.5


class Counter:
    def __init__(self, start):
        self.value = start

    def add(self, n):
        self.value += n
        return self.value

    def __len__(self):
        return self.value


class Shared(Counter):
    """A counter whose state lies on the class: every object sees it."""

    total = 0

    def add(self, n):
        Shared.total += n
        return Shared.total


def test_a_class_is_used_step_by_step():
    def body(student, rng):
        student.plays([3], ("add", 2), ("len",), ("new",), ("add", 1), ("first",), ("len",)).equals([5, 5, None, 4, None, 5])

    run(body, Counter)
    with pytest.raises(CheckFailure) as failure:
        run(body, Shared)
    text = str(failure.value)
    assert "a = double(3)\n        a.add(2)\n        len(a)\n        b = double(3)\n        b.add(1)\n        len(a)" in text
    with pytest.raises(CheckFailure, match="AttributeError"):
        run(body, lambda start: object())


def test_only_plain_data_is_copied():
    for alien in (AlwaysEqual(), np.ones(2).view(Lying), np.array([None]), {1: AlwaysEqual()}, [object()]):
        with pytest.raises(NotPlain):
            copied(alien)
    nested = {"a": [np.ones(2), (1, 2.5, True, None)], "rng": np.random.default_rng(3)}
    twin = copied(nested)
    assert twin["a"][0] is not nested["a"][0] and twin["rng"].random() == nested["rng"].random()


def test_inputs_follow_the_seed(monkeypatch):
    def first(seed):
        monkeypatch.setenv("GRADING_SEED", seed)
        checks.course_seed.cache_clear()
        return checks.small(make(doubled).rng(), 4).tolist()

    try:
        assert first("a") == first("a") != first("b")
    finally:
        monkeypatch.undo()
        checks.course_seed.cache_clear()


def test_a_teachers_file_sets_the_seed(monkeypatch, tmp_path):
    monkeypatch.delenv("GRADING_SEED", raising=False)
    monkeypatch.setattr(checks, "SEED_FILE", tmp_path / "seed")
    checks.course_seed.cache_clear()
    try:
        assert checks.course_seed() == checks.PUBLISHED_SEED
        checks.course_seed.cache_clear()
        (tmp_path / "seed").write_text("本学期\n", encoding="utf-8")
        assert checks.course_seed() == "本学期"
    finally:
        monkeypatch.undo()
        checks.course_seed.cache_clear()


def test_shared_cause_is_spelled_out_once():
    wrong = next(m for m in mutants.mutants_of("ex04-attention", "softmax") if m.body.__name__ == "whole_array")
    with pytest.raises(CheckFailure) as failure:
        checks.verify("ex04-attention", "softmax", "axis far-rows dtype", wrong.body)
    assert str(failure.value).count(wrong.message) == 1
    assert str(failure.value).count("原因同上") == 1
    assert "dtype" not in str(failure.value)


@pytest.mark.parametrize("body, advice", [
    ("return undefined_name", "这个名字没有定义"),
    ("return np.abs(x)", "import numpy as np"),
    ("return f(x)", "函数一直在调用自己"),
    ("total += x.sum(); return total", "赋值之前就用了"),
    ("return (lambda: 0)(x)", "函数的参数要与约定一致"),
    ("return (lambda y: None)(x).sum()", "忘了 return"),
])
def test_an_error_gets_its_own_advice_and_is_said_once(body, advice):
    namespace = {}
    exec(f"def f(x, axis=-1):\n    {body}\n    total = 0", namespace)
    with pytest.raises(CheckFailure) as failure:
        checks.verify("ex04-attention", "softmax", "axis dtype", namespace["f"])
    assert str(failure.value).count("运行时抛出") == 1
    assert str(failure.value).count(advice) == 1
    assert str(failure.value).count("原因同上") == 1


def test_known_mistake_that_passes_a_check_never_explains_its_failure():
    def first_only_as_list(x):
        shape = []
        while isinstance(x, (list, np.ndarray)):
            shape.append(len(x))
            x = x[0]
        return shape

    with pytest.raises(CheckFailure) as failure:
        checks.verify("ex00-journey", "shape_of", "tuple", first_only_as_list)
    assert "返回列表" in str(failure.value)


def test_mistake_is_told_from_others_even_where_arguments_change():
    def in_place(x, axis=-1):
        x -= x.max(axis=axis, keepdims=True)
        e = np.exp(x)
        return e / e.sum(axis=axis, keepdims=True)

    with pytest.raises(CheckFailure) as failure:
        checks.verify("ex04-attention", "softmax", "nothing", in_place)
    assert "对整个数组归一" not in str(failure.value)


def test_function_that_raises_elsewhere_is_diagnosed_all_the_same():
    """The record of all calls meets checks that take apart what was returned, here nothing."""

    def cosine(a, b):
        if a.dtype.kind != "f":
            return None
        a = a / (np.linalg.norm(a, axis=-1, keepdims=True) + 1e-8)
        return (a * b / (np.linalg.norm(b, axis=-1, keepdims=True) + 1e-8)).sum(-1)

    for name in [name for function, name in checks.checks_of("ex02-embedding") if function == "cosine_similarity"]:
        with contextlib.suppress(CheckFailure):
            checks.verify("ex02-embedding", "cosine_similarity", name, cosine)


@pytest.mark.parametrize("expected, got, sentence", [
    (0.9926039598508953, 0.9926039410561294, "应为 0.9926039599，得到 0.9926039411"),
    (np.zeros(2), np.float64(1.0), "形状应为 [2]，得到 []（只有一个数）"),
    ([("a", "b")], [("a", "c")], "第 0 个元素的第 1 个元素（从 0 数起）：应为 'b'，得到 'c'"),
    ((np.zeros((2, 5)), np.zeros((2, 3))), (np.zeros((2, 3)), np.zeros((2, 5))), "两个返回值的次序反了"),
    ((1, 2), None, "应返回 2 个值组成的元组（tuple），得到 None（忘了 return？）"),
])
def test_difference_is_a_sentence_to_act_on(expected, got, sentence):
    assert sentence in difference(expected, got, 1e-9, 1e-9)


def test_counters_and_other_mappings_count_as_dicts():
    for mapping in (collections.Counter("aab"), collections.defaultdict(int, a=2, b=1), collections.OrderedDict(a=2, b=1)):
        assert type(copied(mapping)) is dict
        assert copied(mapping) == {"a": 2, "b": 1}


def test_result_is_shown_where_a_refusal_was_due():
    def refused(student, rng):
        student(np.array([0.0])).raises(ValueError)

    with pytest.raises(CheckFailure, match=r"却返回了结果(.|\n)*得到：np.array\(\[1\]\)"):
        run(refused, lambda x: x + 1)


def test_unwritten_function_is_said_once():
    def stub(x, axis=-1):
        raise NotImplementedError

    with pytest.raises(CheckFailure, match="^softmax 还没有写（NotImplementedError）$"):
        checks.verify("ex04-attention", "softmax", "values axis", stub)


CACHE = mutants.rights_of("ex11-kv-cache", "KVCache")[0].body  # a right one, whose keeping the following get wrong


def class_attribute():
    class Cache(CACHE):
        kept = {}

        def __init__(self, n_layers):
            self.store = self.kept.setdefault("store", [None] * n_layers)

        def reset(self):
            self.store[:] = [None] * len(self.store)

    return Cache


def growing_class_attribute():
    class Cache(CACHE):
        store = []

        def __init__(self, n_layers):
            self.store += [None] * n_layers

        def reset(self):
            self.store = [None] * len(self.store)

    return Cache


def default_argument():
    class Cache(CACHE):
        def __init__(self, n_layers, store=[]):  # noqa: B006  the mistake itself
            self.store = store
            store.extend([None] * (n_layers - len(store)))

        def reset(self):
            self.store[:] = [None] * len(self.store)

    return Cache


def global_variable():
    store = []

    class Cache(CACHE):
        def __init__(self, n_layers):
            store.extend([None] * (n_layers - len(store)))
            self.store = store

        def reset(self):
            store[:] = [None] * len(store)

    return Cache


@pytest.mark.parametrize("make", [class_attribute, growing_class_attribute, default_argument, global_variable])
def test_state_that_objects_share_is_named_wherever_it_lies(make):
    """Such a class goes on from what earlier checks and the visible tests left in it, so no fixed result tells it."""
    cache = make()
    for layer in (0, 1):
        cache(2).append(layer, np.ones((2, 3, 4)), np.ones((2, 3, 4)))
    with pytest.raises(CheckFailure) as failure:
        checks.verify("ex11-kv-cache", "KVCache", "store grow layers length separate", cache)
    text = str(failure.value)
    assert "结果与“几个缓存共用一份状态”完全一致" in text
    assert "提示：" not in text, "a failure without a diagnosis"
