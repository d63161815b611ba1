"""python -m book build | execute: what `make book` calls."""

import argparse
import sys
from pathlib import Path

from book import build, execute

ROOT = Path(__file__).resolve().parent.parent


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m book", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("build", "执行并生成网站"), ("execute", "只执行过期的 notebook")):
        command = commands.add_parser(name, help=about)
        command.add_argument("--source", type=Path, default=ROOT, help="含 _config.yml 与 _toc.yml 的目录")
        command.add_argument("--output", type=Path, default=None, help="输出目录（默认为 SOURCE/_build）")
        command.add_argument("--jobs", type=int, default=None, help="同时执行几个 notebook")
        command.add_argument("--force", action="store_true", help="不使用任何缓存")
    options = parser.parse_args(argv)
    output = options.output or options.source / "_build"
    try:
        if options.command == "execute":
            execute.run(options.source, output, jobs=options.jobs, force=options.force)
        else:
            build.run(options.source, output, jobs=options.jobs, force=options.force)
    except (build.BuildError, execute.ExecutionFailed) as error:
        sys.exit(f"\n{error}")


if __name__ == "__main__":
    main()
