"""What imports what: layers point down, the core is alone with the standard library."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

HOUSE = Path(__file__).parents[1] / "src" / "understudy"

# From the ground up. A part may import its own floor and those below it.
FLOORS = (
    ("core",),
    ("messages",),
    ("dialects",),
    ("providers",),
    (
        *("timers", "portal", "driver", "judge", "stream", "structured"),
        *("model", "registry", "testing", ""),
    ),
    ("share",),
    ("observe",),
    ("agents", "gateway"),
    ("rehearse",),
    ("cli", "commands"),
)
FLOOR = {part: number for number, parts in enumerate(FLOORS) for part in parts}

# Facts of the world come as parameters below the providers.
WORLD = {"asyncio", "logging", "os", "random", "secrets", "socket", "ssl", "subprocess", "time"}
PURE = ("core", "messages", "dialects")


class Import(NamedTuple):
    """One import statement's module, and where it stands."""

    file: str  # below src/understudy
    line: int
    module: str

    @property
    def part(self) -> str:
        """Whose it is: the first name below `understudy`, "" for the package itself."""
        return self.file.partition("/")[0].removesuffix(".py").replace("__init__", "")

    def __str__(self) -> str:
        return f"src/understudy/{self.file}:{self.line}: imports {self.module}"


def imports(file: str, text: str) -> Iterator[Import]:
    """All of them: within functions and under TYPE_CHECKING too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (Import(file, node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: write the whole name of the module"
            bases = (f"{node.module}.{alias.name}" for alias in node.names)
            names = bases if node.module == "understudy" else [node.module or ""]
            yield from (Import(file, node.lineno, name) for name in names)


def every_import() -> list[Import]:
    files = sorted(HOUSE.rglob("*.py"))
    assert len(files) > 50
    texts = [(str(file.relative_to(HOUSE).as_posix()), file.read_text("utf-8")) for file in files]
    return [found for file, text in texts for found in imports(file, text)]


def points_up(found: Import) -> bool:
    package, _, rest = found.module.partition(".")
    if package != "understudy":
        return False
    return FLOOR[rest.partition(".")[0]] > FLOOR[found.part]


def is_foreign(found: Import) -> bool:
    package = found.module.partition(".")[0]
    return package != "understudy" and package not in sys.stdlib_module_names


def test_every_part_of_the_house_has_a_floor() -> None:
    parts = {path.stem for path in HOUSE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert sorted(parts - set(FLOOR) - {"__init__", "__pycache__", "ui"}) == []


def test_imports_point_down() -> None:
    assert [str(found) for found in every_import() if points_up(found)] == []


def test_the_core_imports_nothing_but_the_standard_library() -> None:
    core = [found for found in every_import() if found.part == "core"]
    assert [str(found) for found in core if is_foreign(found)] == []


def test_sharing_knows_the_core_only() -> None:
    ours = [f for f in every_import() if f.part == "share" and f.module.startswith("understudy.")]
    above = [str(f) for f in ours if f.module.split(".")[1] not in ("core", "share")]
    assert len(ours) > 10
    assert above == []


def test_the_pure_floors_do_not_look_at_the_world() -> None:
    pure = [found for found in every_import() if found.part in PURE]
    assert [str(found) for found in pure if found.module.partition(".")[0] in WORLD] == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("core/walk.py", "\nfrom understudy.messages.request import Request"),
        ("dialects/base.py", "\ndef late():\n    import understudy.providers.http"),
        ("messages/fit.py", "\nfrom understudy import providers"),
        ("model.py", "\nfrom understudy.agents import Router"),
        ("gateway/serve.py", "\nimport understudy.cli"),
        ("observe/lines.py", "\nfrom understudy.gateway.house import House"),
    ],
)
def test_an_import_that_points_up_is_found_with_its_line(file: str, text: str) -> None:
    (found,) = imports(file, text)
    assert points_up(found)
    assert str(found).startswith(f"src/understudy/{file}:{2 + text.count('def')}: imports under")


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Modules that were there before belong to the interpreter or the environment, not to us.
NEW_STRANGERS = """
import sys
before = set(sys.modules)
{code}
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(new - sys.stdlib_module_names - {{"understudy"}}))
"""
THE_CORE = "\n".join(
    f"import understudy.core.{file.stem}" for file in sorted((HOUSE / "core").glob("[a-z]*.py"))
)
A_CHAIN = """
import understudy
from understudy.testing import Fake
registry = understudy.Registry(env={})
registry.register_provider(Fake("p").script("a", 503, 503))
assert registry.parse("p/a, p/b").generate_sync("hello").text == "hello from p/b"
"""


@pytest.mark.parametrize(
    "code", ["import understudy", THE_CORE, A_CHAIN], ids=["the package", "the core", "a chain"]
)
def test_no_third_party_module_is_loaded_by(code: str) -> None:
    assert fresh(NEW_STRANGERS.format(code=code)) == ""


def test_a_third_party_module_would_be_noticed() -> None:
    assert fresh(NEW_STRANGERS.format(code="import hypothesis")) != ""
