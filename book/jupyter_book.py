"""python -m book.jupyter_book build …: Jupyter Book's own command, started without its slowest import."""

from book import quick  # noqa: F401  isort: skip
from jupyter_book.cli.main import main

if __name__ == "__main__":
    main()
