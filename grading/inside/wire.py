"""Plain data between the student's process and the trusted side: JSON plus raw buffers of numeric arrays, no pickle.

`encode` makes (tree, buffers) of a value and `decode` makes the value of them. Numbers, text, containers, arrays and
random generators cross by value, as exact built-in types: a subclass with its own operators arrives as what it holds.
Everything else is handed to `refer` (encode) and `resolve` (decode), which turn objects into names and back.

Both ends use this module, but only the trusted end relies on it: whatever arrives is checked here before it is built.
"""

import collections
import math
import re

import numpy as np

MAX_BYTES = 32 << 20  # of all buffers of one message
MAX_NODES = 500_000
MAX_DEPTH = 32
EXACT = 2**53  # integers beyond this lose digits in some JSON readers
NUMERIC = re.compile(r"[<>|=](?:b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|[US]\d{1,6})")
# Those whose state is nothing but numbers. MT19937 and Philox keep a position in a table, and NumPy believes whatever it
# is told: a made-up position reads (or crashes) the memory of whoever draws from it.
GENERATORS = {"PCG64", "PCG64DXSM", "SFC64"}
SEQUENCES = {"l": list, "t": tuple, "s": set, "z": frozenset}


class NotPlain(TypeError):
    """The value can't cross, or what arrived is no value."""


def encode(value, refer=None):
    """The value as (tree, buffers); `refer(x)` gives the tree of what is not plain."""
    encoder = _Encoder(refer)
    return encoder.tree(value, 0), encoder.buffers


def decode(tree, buffers, resolve=None):
    """The value of a checked tree; `resolve(tree)` gives what `refer` had named."""
    if sum(len(b) for b in buffers) > MAX_BYTES:
        raise NotPlain(f"数据超过 {MAX_BYTES >> 20} MB")
    return _Decoder(buffers, resolve).value(tree, 0)


class _Encoder:
    def __init__(self, refer):
        self.refer, self.buffers, self.nodes, self.size = refer, [], 0, 0

    def tree(self, x, depth):
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise NotPlain("数据嵌套太深或元素太多")
        if x is None or x is True or x is False:
            return x
        if isinstance(x, np.generic):
            return self._array(np.asarray(x), scalar=True)
        if isinstance(x, str):
            return str.__str__(x)
        if isinstance(x, int):
            x = int.__int__(x)
            return x if -EXACT <= x <= EXACT else ["i", hex(x)]
        if isinstance(x, float):
            return ["f", float.hex(x)]
        return self._compound(x, depth + 1)

    def _compound(self, x, depth):
        if isinstance(x, complex):
            return ["c", float.hex(x.real), float.hex(x.imag)]
        if isinstance(x, np.ndarray):
            return self._array(np.array(x, copy=True, subok=False, order="C"))
        if isinstance(x, collections.Counter):
            return ["k", self._pairs(x, depth)]
        if isinstance(x, dict):
            return ["d", self._pairs(x, depth)]
        for tag, kind in SEQUENCES.items():
            if isinstance(x, kind):
                return [tag, [self.tree(item, depth) for item in kind.__iter__(x)]]
        if isinstance(x, (bytes, bytearray)):
            return ["b", self._buffer(bytes(x))]
        if isinstance(x, np.random.Generator) and type(x.bit_generator).__name__ in GENERATORS:
            return ["g", self.tree(_generator_state(x.bit_generator.state), depth)]
        return self._rare(x, depth)

    def _rare(self, x, depth):
        if isinstance(x, range):
            return ["r", x.start, x.stop, x.step]
        if isinstance(x, slice):
            return ["S", *(self.tree(end, depth) for end in (x.start, x.stop, x.step))]
        if x is Ellipsis:
            return ["e"]
        if isinstance(x, np.dtype) and NUMERIC.fullmatch(x.str):
            return ["D", x.str]
        if isinstance(x, type) and issubclass(x, np.generic) and NUMERIC.fullmatch(np.dtype(x).str):
            return ["T", np.dtype(x).str]
        if self.refer is None:
            raise NotPlain(f"{type(x).__module__}.{type(x).__qualname__}".removeprefix("builtins."))
        return self.refer(x)

    def _pairs(self, x, depth):
        return [[self.tree(k, depth), self.tree(v, depth)] for k, v in dict.items(x)]

    def _array(self, array, scalar=False):
        if not NUMERIC.fullmatch(array.dtype.str):
            if array.dtype.kind != "O" or array.ndim > 8:
                raise NotPlain(f"dtype 为 {array.dtype} 的数组")
            return ["O", list(array.shape), [self.tree(item, 1) for item in array.ravel().tolist()]]
        return ["a", self._buffer(array.tobytes()), array.dtype.str, list(array.shape), scalar]

    def _buffer(self, data):
        self.size += len(data)
        if self.size > MAX_BYTES:
            raise NotPlain(f"数据超过 {MAX_BYTES >> 20} MB")
        self.buffers.append(data)
        return len(self.buffers) - 1


def _generator_state(state):
    if isinstance(state, dict):
        return {key: _generator_state(value) for key, value in state.items()}
    return state


class _Decoder:
    def __init__(self, buffers, resolve):
        self.buffers, self.resolve, self.nodes = buffers, resolve, 0

    def value(self, tree, depth):
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise NotPlain("数据嵌套太深或元素太多")
        if tree is None or isinstance(tree, (bool, str, int)):
            return tree
        if not (isinstance(tree, list) and tree and isinstance(tree[0], str)):
            raise NotPlain("无法识别的数据")
        tag, *rest = tree
        try:
            return self._tagged(tag, rest, depth + 1)
        except NotPlain:
            raise
        except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
            raise NotPlain("无法识别的数据") from error

    def _tagged(self, tag, rest, depth):
        if tag in SEQUENCES:
            return SEQUENCES[tag](self.value(item, depth) for item in rest[0])
        if tag in ("d", "k"):
            pairs = {self.value(k, depth): self.value(v, depth) for k, v in rest[0]}
            return collections.Counter(pairs) if tag == "k" else pairs
        if tag == "a":
            return self._array(*rest)
        if tag == "f":
            return float.fromhex(rest[0])
        if tag == "i":
            return int(rest[0], 16) if len(rest[0]) < 10_000 else None
        if tag == "c":
            return complex(float.fromhex(rest[0]), float.fromhex(rest[1]))
        if tag == "b":
            return bytes(self._buffer(rest[0]))
        return self._rare(tag, rest, depth)

    def _rare(self, tag, rest, depth):
        if tag == "g":
            return _generator(self.value(rest[0], depth))
        if tag == "O":
            shape, items = _shape(rest[0]), [self.value(item, depth) for item in rest[1]]
            array = np.empty(len(items), dtype=object)
            for place, item in enumerate(items):  # a slice assignment would spread nested lists
                array[place] = item
            return array.reshape(shape)
        if tag == "r":
            return range(*map(int, rest))
        if tag == "S":
            return slice(*(self.value(end, depth) for end in rest))
        if tag == "e":
            return Ellipsis
        if tag in "DT" and NUMERIC.fullmatch(rest[0]):
            return np.dtype(rest[0]) if tag == "D" else np.dtype(rest[0]).type
        if self.resolve is None:
            raise NotPlain("无法识别的数据")
        return self.resolve([tag, *rest])

    def _array(self, index, dtype, shape, scalar):
        if not NUMERIC.fullmatch(dtype):
            raise NotPlain("无法识别的数组类型")
        array = np.frombuffer(self._buffer(index), np.dtype(dtype)).reshape(_shape(shape)).copy()
        if dtype.endswith("b1"):
            array = np.asarray(array.view(np.uint8) != 0)  # a byte of 200 would count as 200 where truths are summed
        return array[()] if scalar is True and array.ndim == 0 else array

    def _buffer(self, index):
        if not isinstance(index, int) or not 0 <= index < len(self.buffers):
            raise NotPlain("无法识别的数据")
        return self.buffers[index]


def _shape(lengths):
    """The lengths, if an array with 1 in place of every 0 would be of a size that may cross.

    An empty array costs nothing to send, whatever its other lengths; a sum over it would need room for them.
    """
    lengths = [int(n) for n in lengths]
    if min(lengths, default=0) < 0 or math.prod(max(1, n) for n in lengths) > MAX_BYTES:
        raise NotPlain("无法识别的形状")
    return lengths


def _generator(state):
    if not isinstance(state, dict) or state.get("bit_generator") not in GENERATORS:
        raise NotPlain("无法识别的随机数发生器")
    bits = getattr(np.random, state["bit_generator"])(0)
    bits.state = state
    return np.random.Generator(bits)
