"""How many things each type name stands for.

    deploy/lib/names.py              report, always content
    deploy/lib/names.py --strict     fails if a name stands for more than two things
    deploy/lib/names.py --with-tests the types of tests count too

Counts every struct, enum, trait, union and type alias that Rust sources define; what a trait or an impl calls its
associated types is no definition. Relies on rustfmt: items begin their line, and a block ends where it began.
"""

import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PLACES = ("services", "shared", "loadtests")
MOST = 2
# Each module says these of itself, and they are read with its name: `scale::Args`.
ALLOWED = {"Args", "Config", "Error"}

VISIBLE = r"(?:pub(?:\([^)]*\))?\s+)?"
ITEM = re.compile(rf"^(\s*){VISIBLE}(?:unsafe\s+)?(struct|enum|trait|type|union)\s+([A-Z]\w*)")
OWNER = re.compile(rf"^(\s*){VISIBLE}(?:unsafe\s+)?(?:impl|trait)\b")
TEST_MODULE = re.compile(rf"^(\s*){VISIBLE}mod\s+\w+\s*\{{")


def is_test(path):
    parts = path.relative_to(ROOT).parts
    return "tests" in parts or "testkit" in parts or path.stem == "tests" or path.stem.endswith("_tests")


def definitions(path, with_tests):
    """Yields line number and name of each type that this file defines."""
    testing = False  # after #[cfg(test)]
    skipped = None  # the line that ends a module of tests
    owner = None  # the line that ends an impl or a trait, in which `type` is not a definition
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if skipped is not None:
            skipped = None if line == skipped else skipped
            continue
        if line.lstrip().startswith("#[cfg(test)]"):
            testing = True
            continue
        if not with_tests and testing and (found := TEST_MODULE.match(line)):
            skipped = f"{found.group(1)}}}"
        testing = testing and line.lstrip().startswith("#[")
        if owner is not None and line == owner:
            owner = None
        found = ITEM.match(line)
        if found and not (owner is not None and found.group(2) == "type"):
            yield number, found.group(3)
        if owner is None and (begun := OWNER.match(line)) and not line.rstrip().endswith(("}", ";")):
            owner = f"{begun.group(1)}}}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--strict", action="store_true", help="fail if a name stands for too much")
    parser.add_argument("--with-tests", action="store_true", help="count the types of tests too")
    asked = parser.parse_args()

    places = collections.defaultdict(list)
    for path in sorted(path for place in PLACES for path in (ROOT / place).rglob("*.rs")):
        if asked.with_tests or not is_test(path):
            for number, name in definitions(path, asked.with_tests):
                places[name].append(f"{path.relative_to(ROOT)}:{number}")

    types = sum(map(len, places.values()))
    if not types:
        sys.exit("no types found: this looks in the wrong place")
    print(f"{types} types, {len(places)} names, {types / len(places):.3f} types per name")
    crowded = {name: at for name, at in places.items() if len(at) > MOST and name not in ALLOWED}
    for name, at in sorted(crowded.items(), key=lambda each: (-len(each[1]), each[0])):
        print(f"{name} is {len(at)} things: {' '.join(at)}")
    if crowded:
        print(f"{len(crowded)} names stand for more than {MOST} things")
        if asked.strict:
            sys.exit(1)


if __name__ == "__main__":
    main()
