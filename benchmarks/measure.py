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

    def ratio(self, ours, theirs, target=None, name=None, note="", scale=1.0):
        """Median over the rounds of ours ÷ theirs, each pair measured in the same round."""
        ratios = [scale * a / b for a, b in zip(self.seconds[ours], self.seconds[theirs])]
        quartiles = tuple(statistics.quantiles(ratios, n=4)[::2]) if len(ratios) > 1 else ()
        return Row(name or f"{ours} ÷ {theirs}", statistics.median(ratios), target, note=note, quartiles=quartiles,
                   seconds={ours: self.median(ours), theirs: self.median(theirs)})

    def share(self, work, ours, reference, target, name):
        """Work a second of `ours` as a part of that of `reference`; `work` holds the amount that each does in a run."""
        shares = [work[ours] / a / (work[reference] / b) for a, b in zip(self.seconds[ours], self.seconds[reference])]
        return Row(name, statistics.median(shares), target, least=True, quartiles=tuple(statistics.quantiles(shares, n=4)[::2]),
                   seconds={ours: self.median(ours), reference: self.median(reference)})


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
