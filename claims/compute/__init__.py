"""The recomputations, one module a part of the course. Each is small, seeded, and uses `lib` for every component."""
