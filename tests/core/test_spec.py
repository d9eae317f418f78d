"""Text to chain (contract S1-S7, S11)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.errors import AliasCycle, EmptySpec, SpecError, UnknownAlias
from understudy.core.spec import check_alias_name, expand


def chain(spec: str, **aliases: str) -> list[str]:
    return [str(target) for target in expand(spec, aliases.get, aliases)]


@pytest.mark.parametrize(
    ("spec", "targets"),
    [
        ("p/m", ["p/m"]),
        ("p/a/b:c", ["p/a/b:c"]),
        ("p/x:high", ["p/x:high"]),
        ("p/a,p/b,q/c", ["p/a", "p/b", "q/c"]),
        (" p/a ,, q/b ,", ["p/a", "q/b"]),
        ("p/a,q/b,p/a", ["p/a", "q/b"]),
        ("p/a//b", ["p/a//b"]),
        ("p/ünï cödé", ["p/ünï cödé"]),
    ],
)
def test_a_spec_is_read_verbatim(spec: str, targets: list[str]) -> None:
    assert chain(spec) == targets


def test_the_model_is_everything_after_the_first_slash() -> None:
    (target,) = expand("p/a/b:c", lambda name: None)
    assert (target.provider, target.model) == ("p", "a/b:c")


@pytest.mark.parametrize("spec", ["t,p/z", "p/z,t", "p/y,t,p/z"])
def test_an_alias_expands_where_it_stands(spec: str) -> None:
    expected = [x for e in spec.split(",") for x in (["p/a", "q/b"] if e == "t" else [e])]
    assert chain(spec, t="p/a,q/b") == expected


def test_aliases_of_aliases_give_one_flat_list() -> None:
    assert chain("x", x="p/1,y", y="z,p/3", z="p/2") == ["p/1", "p/2", "p/3"]


def test_the_same_alias_twice_is_no_cycle() -> None:
    assert chain("t,t", t="p/a,q/b") == ["p/a", "q/b"]


def test_duplicates_across_alias_and_target_keep_the_first() -> None:
    assert chain("q/b,t", t="p/a,q/b") == ["q/b", "p/a"]


@pytest.mark.parametrize("spec", ["", " ", ",", " , ,, "])
def test_nothing_at_all_is_an_empty_spec_quoting_it(spec: str) -> None:
    with pytest.raises(EmptySpec) as caught:
        chain(spec)
    assert repr(spec) in str(caught.value)


@pytest.mark.parametrize(("element", "missing"), [("p/", "model"), ("/m", "provider")])
def test_half_a_target_is_an_error_that_quotes_it(element: str, missing: str) -> None:
    with pytest.raises(SpecError, match=f"no {missing} in element '{element}'"):
        chain(f"q/b,{element}")


@pytest.mark.parametrize(
    ("aliases", "path"),
    [
        ({"a": "a"}, "a -> a"),
        ({"a": "b", "b": "a"}, "a -> b -> a"),
        ({"a": "p/1,b", "b": "q/2,c", "c": "b"}, "b -> c -> b"),
    ],
)
def test_a_cycle_prints_its_path(aliases: dict[str, str], path: str) -> None:
    with pytest.raises(AliasCycle, match=path):
        chain("a", **aliases)


def test_an_unknown_alias_names_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(UnknownAlias) as caught:
        chain("thinkin", thinking="p/a", fast="p/b")
    message = str(caught.value)
    assert "did you mean 'thinking'?" in message
    assert "known aliases: fast, thinking" in message


def test_an_alias_ladder_5000_deep_is_no_problem() -> None:
    ladder = {f"a{n}": f"a{n + 1}" for n in range(5000)} | {"a5000": "p/m"}
    assert chain("a0", **ladder) == ["p/m"]


def test_a_cycle_5000_deep_is_found_and_its_path_stays_readable() -> None:
    ladder = {f"a{n}": f"a{n + 1}" for n in range(5000)} | {"a5000": "a0"}
    with pytest.raises(AliasCycle) as caught:
        chain("a0", **ladder)
    assert len(str(caught.value)) < 300


def test_a_ladder_that_doubles_at_every_step_asks_each_name_once() -> None:
    aliases = {f"a{n}": f"a{n + 1},a{n + 1}" for n in range(200)} | {"a200": "p/m"}
    asked: list[str] = []

    def lookup(name: str) -> str | None:
        asked.append(name)
        return aliases.get(name)

    assert [str(t) for t in expand("a0", lookup)] == ["p/m"]
    assert len(asked) == 201


@pytest.mark.parametrize("name", ["", "a/b", "a,b", " a", "a "])
def test_a_name_no_spec_could_reach_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match="bad alias name"):
        check_alias_name(name)


NAMES = st.sampled_from("abcde")
BODIES = st.lists(st.one_of(NAMES, st.sampled_from(["p/1", "p/2", "q/1", "p/3"])), max_size=4)


def oracle(
    spec: list[str], aliases: dict[str, list[str]], path: tuple[str, ...] = ()
) -> list[str]:
    """The grammar told naively: expand everything, then drop duplicates."""
    flat: list[str] = []
    for element in spec:
        if element in path:
            raise AliasCycle
        flat += (
            oracle(aliases[element], aliases, (*path, element))
            if element in aliases
            else [element]
        )
    return list(dict.fromkeys(flat))


@given(spec=BODIES, aliases=st.dictionaries(NAMES, BODIES, min_size=5, max_size=5))
def test_expansion_agrees_with_the_naive_reading(
    spec: list[str], aliases: dict[str, list[str]]
) -> None:
    texts = {name: ",".join(body) for name, body in aliases.items()}
    try:
        expected = oracle(spec, aliases)
    except AliasCycle:
        with pytest.raises(AliasCycle):
            chain(",".join(spec), **texts)
        return
    if expected:
        assert chain(",".join(spec), **texts) == expected
    else:
        with pytest.raises(EmptySpec):
            chain(",".join(spec), **texts)
