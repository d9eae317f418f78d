"""`understudy completion`: scripts for bash, zsh and fish, made from the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """A flag, or a place for a word."""

    names: tuple[str, ...]  # none for a place
    means: str
    choices: tuple[str, ...] = ()
    file: bool = False
    takes: bool = False  # is it followed by a value


@dataclass(frozen=True, slots=True)
class Command:
    """A verb, and verbs of its own if it has any."""

    name: str
    means: str
    options: tuple[Option, ...]
    commands: tuple[Command, ...] = ()

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
        yield path, self
        for command in self.commands:
            yield from command.walk((*path, command.name))


def read(parser: argparse.ArgumentParser, name: str = "", means: str = "") -> Command:
    """What a parser takes. argparse has no public way to ask, so its own list is read."""
    options = []
    commands: list[Command] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            told = {choice.dest: choice.help or "" for choice in action._choices_actions}
            commands += [read(p, verb, told.get(verb, "")) for verb, p in action.choices.items()]
        else:
            options.append(_option(action))
    return Command(name, means, tuple(options), tuple(commands))


def _option(action: argparse.Action) -> Option:
    return Option(
        tuple(action.option_strings),
        (action.help or "").replace("%%", "%"),
        tuple(str(choice) for choice in action.choices or ()),
        action.metavar == "FILE",
        action.nargs != 0,
    )


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    return SCRIPTS[shell](read(parser))


# -- bash -------------------------------------------------------------------------------------


def _bash(top: Command) -> str:
    cases = "\n".join(_bash_case(path, command) for path, command in top.walk())
    files = "|".join(
        sorted({n for _, c in top.walk() for o in c.options if o.file for n in o.names})
    )
    return f"""# understudy: completion for bash; try: eval "$(understudy completion bash)"
_understudy() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    local path="" word words=""
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$path $word" in
            {_bash_paths(top)}) path="$path $word" ;;
        esac
    done
    case "$before" in
        {files}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    esac
    case "$path" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [ ${{#COMPREPLY[@]}} -eq 0 ]; then
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _understudy understudy
"""


def _bash_paths(top: Command) -> str:
    return "|".join(f'" {" ".join(path)}"' for path, _ in top.walk() if path)


def _bash_case(path: tuple[str, ...], command: Command) -> str:
    where = f" {' '.join(path)}" if path else ""
    return f'        "{where}") words="{" ".join(_words(command))}" ;;'


def _words(command: Command) -> list[str]:
    """Everything that may come next."""
    flags = [name for option in command.options for name in option.names]
    places = [choice for o in command.options if not o.names for choice in o.choices]
    return [*(c.name for c in command.commands), *places, *flags]


# -- zsh --------------------------------------------------------------------------------------


def _zsh(top: Command) -> str:
    functions = "\n\n".join(_zsh_function(path, command) for path, command in top.walk())
    return f"""#compdef understudy
# understudy: completion for zsh; save as _understudy in a directory of $fpath

{functions}

# Loaded from $fpath this file is the function itself; read by `source` it only registers it.
if [ "$funcstack[1]" = "_understudy" ]; then
    _understudy "$@"
else
    compdef _understudy understudy
fi
"""


def _zsh_function(path: tuple[str, ...], command: Command) -> str:
    name = "_".join(("_understudy", *path))
    places = [option for option in command.options if not option.names]
    specs = [_zsh_spec(option) for option in command.options if option.names]
    specs += [_zsh_place(option, n) for n, option in enumerate(places, 1)]
    if not command.commands:
        lines = " \\\n        ".join(specs)
        return f"{name}() {{\n    _arguments -s \\\n        {lines}\n}}"
    rows = "\n".join(f"        {_quoted(f'{c.name}:{_bare(c.means)}')}" for c in command.commands)
    cases = "\n".join(f"        {c.name}) {name}_{c.name} ;;" for c in command.commands)
    lines = " \\\n        ".join([*specs, "'1:command:->command'", "'*::argument:->rest'"])
    return f"""{name}() {{
    local state line
    local -a commands
    commands=(
{rows}
    )
    _arguments -C \\
        {lines}
    case $state in
        command) _describe command commands ;;
        rest) case $line[1] in
{cases}
        esac ;;
    esac
}}"""


def _zsh_spec(option: Option) -> str:
    means = _bare(option.means)
    value = f":value:{_zsh_values(option)}" if option.takes else ""
    return " ".join(_quoted(f"{name}[{means}]{value}") for name in option.names)


def _zsh_place(option: Option, place: int) -> str:
    return _quoted(f"{place}:{_bare(option.means)}:{_zsh_values(option)}")


def _zsh_values(option: Option) -> str:
    if option.choices:
        return f"({' '.join(option.choices)})"
    return "_files" if option.file else " "


def _bare(text: str) -> str:
    """Without what a zsh spec would read as its own punctuation."""
    return "".join(" " if char in ":[]()" else char for char in text)


# -- fish -------------------------------------------------------------------------------------


def _fish(top: Command) -> str:
    lines = [
        "# understudy: completion for fish; save as ~/.config/fish/completions/understudy.fish",
        "complete -c understudy -f",
    ]
    for path, command in top.walk():
        when = _fish_when(path, command)
        for inner in command.commands:
            lines.append(
                f"complete -c understudy -n {when} -a {inner.name} -d {_quoted(inner.means)}"
            )
        lines += [_fish_line(when, option) for option in command.options]
    return "\n".join(lines) + "\n"


def _fish_when(path: tuple[str, ...], command: Command) -> str:
    seen = [f"__fish_seen_subcommand_from {word}" for word in path]
    if command.commands:
        inner = " ".join(c.name for c in command.commands)
        seen.append(f"not __fish_seen_subcommand_from {inner}")
    return _quoted("; and ".join(seen) or "true")


def _fish_line(when: str, option: Option) -> str:
    parts = [f"complete -c understudy -n {when}"]
    parts += [f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names]
    if option.names and option.takes:
        parts.append("-r")
    if option.file:
        parts.append("-F")
    if option.choices:
        parts.append(f"-a {_quoted(' '.join(option.choices))}")
    return " ".join([*parts, f"-d {_quoted(option.means)}"])


def _quoted(text: str) -> str:
    """In single quotes, for any of the three."""
    return "'" + text.replace("'", "’") + "'"


SCRIPTS: dict[str, Callable[[Command], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
