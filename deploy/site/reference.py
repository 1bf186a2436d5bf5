"""The pages of the reference, written from what the program itself uses: settings, tenant file, errors, commands.

They are written whenever the site is built and are in no commit, so they cannot be behind. Metrics and tools have pages in
docs that tests of the workspace hold to the code (docs/telemetry.md, docs/toolsets).
"""

import json
import pathlib
import re
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CODES = re.compile(r'((?:^ *///.*\n)+) *\w+ = "([a-z0-9_]+)": (\w+)((?: \w+)*),$', re.M)
# The status of each class of failure, as docs/API.md and `shared/mcp/src/codes.rs` have it.
CLASSES = re.compile(r"^ +Class::(\w+) => (\d{3}),", re.M)


def pages(binary):
    """Each page of the reference by its path in the site."""
    return {
        "reference/settings.md": settings(),
        "reference/tenant-file.md": tenant_file(),
        "reference/errors.md": errors(),
        "reference/commands.md": commands(binary),
    }


def settings():
    """services/gateway/defaults.toml, one table for each section. A comment belongs to the key below it."""
    text = (ROOT / "services/gateway/defaults.toml").read_text()
    parsed = tomllib.loads(text)
    lines, comment, section, rows = [], [], None, 0
    for line in text.splitlines():
        if match := re.fullmatch(r"\[([\w.]+)\]", line):
            section, intro = match[1], comment
            lines += ["", f"## `{section}`", "", *([" ".join(intro), ""] if intro else [])]
            comment = []
        elif line.startswith("#"):
            comment.append(line[1:].removeprefix(" "))
        elif match := re.match(r"(\w+) = (.*)", line):
            key, default = match.groups()
            variable = f"QM_{section.upper().replace('.', '__')}__{key.upper()}"
            lines += [f"### `{section}.{key}`", "", f"Default: `{default}`. Environment: `{variable}`.", "", *(paragraphs(comment) or ["As the key before."]), ""]
            comment, rows = [], rows + 1
        elif not line and not section:
            lines += [" ".join(comment)]
            comment = []
    expected = sum(not isinstance(value, dict) for part in parsed.values() for value in part.values())
    if rows != expected:
        raise SystemExit(f"defaults.toml has {expected} keys, and {rows} were found: the page would be wrong")
    return "\n".join(["# Settings", "", "Written from `services/gateway/defaults.toml`.", "", *lines, ""])


def paragraphs(comment):
    """Lines of a comment; what is indented in it, such as keys of an entry, stays as it is."""
    found, block = [], []
    for line in comment:
        if line.startswith("  "):
            block.append(line.removeprefix("  "))
        else:
            if block:
                found += ["", "```text", *block, "```", ""]
                block = []
            found.append(line)
    return found + (["", "```text", *block, "```"] if block else [])


def tenant_file():
    schema = json.loads((ROOT / "docs/tenant.schema.json").read_text())
    rows = []
    walk(schema, schema, "", rows, ())
    lines = ["# Tenant file", "", "Written from the JSON Schema that the service publishes at `/v1/schemas/tenant.json` (`quartermaster schema`).", ""]
    lines += ["| key | type | meaning |", "|---|---|---|"]
    return "\n".join(lines + [f"| `{path}` | {kind} | {text} |" for path, kind, text in rows] + [""])


def walk(root, schema, at, rows, inside):
    """Every key with its path; a list adds `[]`, a map `.*`."""
    name = schema.get("$ref")
    if name in inside:
        return
    inside = (*inside, name) if name else inside
    while "$ref" in schema:
        schema = {**root["$defs"][schema["$ref"].rsplit("/", 1)[1]], **{key: value for key, value in schema.items() if key != "$ref"}}
    required = schema.get("required", [])
    for key, part in schema.get("properties", {}).items():
        path = f"{at}.{key}" if at else key
        text = " ".join(described(root, part).split())
        rows.append((path, kind(root, part) + (", required" if key in required else ""), text.replace("|", "\\|")))
        walk(root, part, path, rows, inside)
    if isinstance(schema.get("items"), dict):
        walk(root, schema["items"], f"{at}[]", rows, inside)
    if isinstance(schema.get("additionalProperties"), dict):
        walk(root, schema["additionalProperties"], f"{at}.*", rows, inside)
    for option in schema.get("anyOf", []) + schema.get("oneOf", []):
        walk(root, option, at, rows, inside)


def described(root, part):
    if "description" in part:
        return part["description"]
    return root["$defs"][part["$ref"].rsplit("/", 1)[1]].get("description", "") if "$ref" in part else ""


def kind(root, part):
    if "$ref" in part:
        return kind(root, root["$defs"][part["$ref"].rsplit("/", 1)[1]])
    if "enum" in part:
        return " or ".join(f"`{value}`" for value in part["enum"])
    if "const" in part:
        return f"`{json.dumps(part['const'])}`"
    for several in ("anyOf", "oneOf"):
        if several in part:
            kinds = dict.fromkeys(kind(root, option) for option in part[several])
            return " or ".join(each for each in kinds if each != "null")
    given = part.get("type", "anything")
    return " or ".join(each for each in given if each != "null") if isinstance(given, list) else given


def errors():
    """The tables of codes in the sources, each with its own words."""
    tables = {"Every call": ROOT / "shared/domain/src/code.rs", "Every target": ROOT / "shared/target/src/codes.rs"}
    tables |= {f"Toolset {file.parts[-3]}": file for file in sorted((ROOT / "shared/toolsets").glob("*/src/codes.rs"))}
    statuses = dict(CLASSES.findall((ROOT / "shared/mcp/src/codes.rs").read_text()))
    lines = ["# Errors", "", "Written from the tables of codes in the sources. How they travel by MCP and REST: [API](../API.md#errors).", ""]
    for name, file in tables.items():
        text = file.read_text().split("#[cfg(test)]")[0]
        rows = CODES.findall(text)
        if not rows:
            raise SystemExit(f"no code was found in {file}: the page would be wrong")
        lines += [f"## {name}", "", "| code | kind | REST | retry | meaning |", "|---|---|---|---|---|"]
        for comment, code, of_class, flags in rows:
            meaning = " ".join(line.strip().removeprefix("///").strip() for line in comment.splitlines())
            retry = "yes" if "retry" in flags.split() else ""
            lines.append(f"| `{code}` | {words(of_class)} | {statuses.get(of_class, '')} | {retry} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def words(name):
    return re.sub(r"(?<!^)([A-Z])", r" \1", name).lower()


def commands(binary):
    lines = ["# Commands", "", "Written from `quartermaster --help`.", ""]
    lines += help_of(binary, [])
    return "\n".join([*lines, ""])


def help_of(binary, path):
    done = subprocess.run([binary, *path, "--help"], capture_output=True, text=True, check=True)
    lines = [f"{'##' if len(path) < 2 else '###'} `{' '.join(['quartermaster', *path])}`", "", "```text", done.stdout.rstrip(), "```", ""]
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", done.stdout, re.M)
    names = re.findall(r"^  ([a-z][\w-]*)", listed[1], re.M) if listed else []
    for name in names:
        if name != "help":
            lines += help_of(binary, [*path, name])
    return lines
