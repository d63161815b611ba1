"""The baseline of BPE training: recount every pair of every chunk at every merge, chunks not even counted once.

This is how teaching versions work, because it is the definition: nothing to keep up to date, nothing to get wrong.
"""
import regex


def pairs(chunks):
    counts = {}
    for ids in chunks:
        for pair in zip(ids, ids[1:]):
            counts[pair] = counts.get(pair, 0) + 1
    return counts


def merge(ids, pair, new):
    merged, i = [], 0
    while i < len(ids):
        if ids[i] == pair[0] and i < len(ids) - 1 and ids[i + 1] == pair[1]:
            merged.append(new)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


def train(text, vocab_size, pattern):
    chunks = [list(chunk.encode()) for chunk in regex.findall(pattern, text)]
    merges = []
    for new in range(256, vocab_size):
        counts = pairs(chunks)
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        chunks = [merge(ids, best, new) for ids in chunks]
        merges.append(best)
    return merges


def in_bytes(merges):
    """Pairs of ids as pairs of byte strings."""
    tokens, pairs = [bytes([b]) for b in range(256)], []
    for left, right in merges:
        pairs.append((tokens[left], tokens[right]))
        tokens.append(tokens[left] + tokens[right])
    return pairs
