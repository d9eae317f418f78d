"""The grammar of chains: text in, targets out. No I/O, no catalogue; ids are taken verbatim.

    spec    := element ("," element)*
    element := provider "/" model      the model is everything after the first slash
             | alias                   a bare word, replaced in place by its own spec

Expansion keeps an explicit stack (5,000 aliases deep is fine) and visits each alias once: a
second visit could only add duplicates, which are dropped anyway. So a ladder that doubles at
every step costs as much as one that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from understudy.core.errors import AliasCycle, EmptySpec, SpecError, UnknownAlias
from understudy.core.target import Target
from understudy.core.words import meant

DEEPEST = 10_000  # aliases within aliases; only a resolver that makes up names gets there
Lookup = Callable[[str], str | None]  # an alias's spec, or None if nobody knows the name


def elements(spec: str) -> list[str]:
    """The parts between commas, trimmed, blanks dropped."""
    return [part for raw in spec.split(",") if (part := raw.strip())]


def expand(spec: str, lookup: Lookup, known: Iterable[str] = ()) -> tuple[Target, ...]:
    """The chain a spec stands for: aliases expanded in place, duplicates dropped, first kept."""
    return _Expansion(spec, lookup, known).run()


@dataclass(slots=True)
class _Expansion:
    """One spec being expanded: the path of open aliases, those done with, the targets so far."""

    spec: str
    lookup: Lookup
    known: Iterable[str]
    targets: dict[str, Target] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)

    def run(self) -> tuple[Target, ...]:
        stack: list[Iterator[str]] = [iter(elements(self.spec))]
        while stack:
            element = next(stack[-1], None)
            if element is None:
                stack.pop()
                self._close()
            elif "/" in element:
                target = read_target(element, self.spec)
                self.targets.setdefault(target.key, target)
            elif element not in self.done:
                stack.append(iter(self._enter(element)))
        if not self.targets:
            raise EmptySpec(f"empty model spec {self.spec!r}; name at least one provider/model")
        return tuple(self.targets.values())

    def _enter(self, name: str) -> list[str]:
        if name in self.open:
            loop = [*self.path[self.path.index(name) :], name]
            raise AliasCycle(f"alias cycle in {self.spec!r}: {_shown(loop)}")
        if len(self.path) >= DEEPEST:
            raise AliasCycle(f"aliases without end in {self.spec!r}: {_shown([*self.path, name])}")
        body = self.lookup(name)
        if body is None:
            raise UnknownAlias(_unknown(name, self.spec, sorted(self.known)))
        self.path.append(name)
        self.open.add(name)
        return elements(body)

    def _close(self) -> None:
        if self.path:
            name = self.path.pop()
            self.open.discard(name)
            self.done.add(name)


def read_target(element: str, spec: str) -> Target:
    provider, _, model = element.partition("/")
    if not provider or not model:
        missing = "model" if provider else "provider"
        raise SpecError(
            f"no {missing} in element {element!r} of {spec!r}; write provider/model, or an alias"
        )
    return Target(provider, model)


def check_alias_name(name: str) -> None:
    """Refuse names that could never be reached from a spec."""
    if not name or name != name.strip() or "/" in name or "," in name:
        raise SpecError(
            f"bad alias name {name!r}; use a word without slash, comma or blanks round it"
        )


def _unknown(name: str, spec: str, known: list[str]) -> str:
    asked = meant(name, known)
    hint = f"{asked} " if asked else ""
    listed = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
    names = f"known aliases: {listed}" if known else "no aliases are registered"
    return f"unknown alias {name!r} in {spec!r}; {hint}{names}; a target is written provider/model"


def _shown(loop: list[str]) -> str:
    if len(loop) > 12:
        loop = [*loop[:6], "…", *loop[-5:]]
    return " -> ".join(loop)
