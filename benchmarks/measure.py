"""Timing by turns: in every round each contestant runs once, so that all meet the same disturbances.

What is compared is CPU time on one thread. Wall time and several threads mean nothing on a machine that others use too.
"""
import random
import statistics
import time
from dataclasses import dataclass, field


@dataclass
class Row:
    """One line of the report: `value` is to stay at or below `target` (`least`: at or above)."""

    name: str
    value: float
    target: float | None
    least: bool = False
    note: str = ""
    quartiles: tuple = ()
    seconds: dict = field(default_factory=dict)

    @property
    def reached(self):
        if self.target is None:
            return None
        return self.value >= self.target if self.least else self.value <= self.target


class Times:
    """CPU seconds of every contestant in every round."""

    def __init__(self, seconds):
        self.seconds = seconds

    def median(self, name):
        return statistics.median(self.seconds[name])

    def ratio(self, ours, theirs, target, name, least=False):
        """Median over the rounds of ours ÷ theirs, each pair measured in the same round."""
        return self._row(ours, theirs, lambda a, b: a / b, target, name, least)

    def share(self, work, ours, reference, target, name):
        """Work a second of `ours` as a part of that of `reference`; `work` holds the amount that each does in a run."""
        return self._row(ours, reference, lambda a, b: work[ours] / a / (work[reference] / b), target, name, True)

    def _row(self, one, other, compare, target, name, least):
        values = list(map(compare, self.seconds[one], self.seconds[other]))
        return Row(name, statistics.median(values), target, least, quartiles=tuple(statistics.quantiles(values, n=4)[::2]),
                   seconds={n: self.median(n) for n in (one, other)})


def take_turns(contestants, rounds, warm_up=1):
    """Run every contestant once a round, in a new order each time: who comes after a large matrix product finds the
    caches full of it. A contestant may be a pair (prepare, run) of which only run is timed.
    """
    pairs = {name: c if isinstance(c, tuple) else (lambda: None, c) for name, c in contestants.items()}
    for _ in range(warm_up):
        for prepare, run in pairs.values():
            prepare()
            run()
    seconds = {name: [] for name in pairs}
    order = random.Random(0)
    for _ in range(rounds):
        for name in order.sample(list(pairs), len(pairs)):
            prepare, run = pairs[name]
            prepare()
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    return Times(seconds)
