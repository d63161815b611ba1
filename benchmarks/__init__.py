"""Side-by-side measurements of `lib` with its peers, in one process, by turns: `python -m benchmarks --help`."""
