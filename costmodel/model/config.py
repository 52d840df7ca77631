"""Reads a model's config key by key and remembers everything that is wrong with it.

Sizes are never guessed: a key that is missing and has no default documented by its family is a
violation, and all violations come in one answer (``Config.check``).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from costmodel.errors import InputError, Violation

MAX_SIZE: Final = 2**40
"""Largest number accepted for any one size."""

MAX_MTP: Final = 16
"""Most multi-token prediction blocks, as in the graph format."""

_PLACEHOLDER: Final = 1
"""What a missing size reads as, so that reading goes on and finds the other mistakes too."""


class Config:
    """One mapping of a config document, with a list of violations shared by its sub-mappings."""

    def __init__(
        self,
        document: Mapping[str, Any],
        *,
        name: str = "",
        pointer: str = "",
        violations: list[Violation] | None = None,
    ) -> None:
        self.document = document
        self.name = name
        self.pointer = pointer
        self.violations: list[Violation] = [] if violations is None else violations

    def refuse(self, key: str, rule: str, fix: str) -> None:
        """Records a violation at ``key``: the first one, as others may only follow from it."""
        if self.sound(key):
            value = self.document.get(key, "nothing")
            field = f"{self.pointer}/{key}"
            self.violations.append(Violation(field=field, value=value, rule=rule, fix=fix))

    def sound(self, *keys: str) -> bool:
        """Whether none of these keys has been refused so far."""
        fields = {f"{self.pointer}/{key}" for key in keys}
        return not any(violation.field in fields for violation in self.violations)

    def check(self) -> None:
        """Raises one InputError with every violation so far; families call it before building."""
        if self.violations:
            raise InputError(self.violations)

    def has(self, key: str) -> bool:
        """Whether the key is there and not null."""
        return self.document.get(key) is not None

    def raw(self, *keys: str) -> Any:
        """Value of the first of these keys that is there and not null, else None."""
        return next((self.document[key] for key in keys if self.has(key)), None)

    def _found(self, keys: Sequence[str]) -> str:
        return next((key for key in keys if self.has(key)), keys[0])

    def size(
        self, *keys: str, default: int | None = None, least: int = 1, most: int = MAX_SIZE
    ) -> int:
        """A whole number from ``least`` to ``most`` under the first of these keys that is there."""
        key = self._found(keys)
        value = self.document.get(key)
        if value is None:
            if default is not None:
                return default
            self.refuse(key, "is needed", f"add {' or '.join(keys)} as a whole number")
            return max(_PLACEHOLDER, least)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(key, "must be a whole number", "write it without a fraction or quotes")
        elif not least <= value <= most:
            limit = "2^40" if most == MAX_SIZE else most
            self.refuse(key, f"must be from {least} to {limit}", "correct the size")
        else:
            return value
        return max(_PLACEHOLDER, least)

    def optional_size(self, *keys: str) -> int | None:
        """A size, or None where the key is missing, null, zero or a negative sentinel."""
        key = self._found(keys)
        value = self.document.get(key)
        if value is None or (isinstance(value, int | float) and value <= 0):
            return None
        return self.size(key)

    def number(self, *keys: str, default: float, most: float) -> float:
        """A number above 0 and at most ``most`` under the first of these keys that is there."""
        value = self.raw(*keys)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(self._found(keys), "must be a number", "write a number")
        elif not 0 < value <= most:
            self.refuse(self._found(keys), f"must be above 0 and at most {most:g}", "correct it")
        else:
            return float(value)
        return default

    def flag(self, *keys: str, default: bool | None = None) -> bool:
        """True or false under the first of these keys that is there."""
        value = self.raw(*keys)
        if isinstance(value, bool):
            return value
        if value is not None:
            self.refuse(self._found(keys), "must be true or false", "write true or false")
        elif default is None:
            self.refuse(keys[0], "is needed", f"add {' or '.join(keys)} as true or false")
        return bool(default)

    def word(self, *keys: str, default: str) -> str:
        """A text under the first of these keys that is there."""
        value = self.raw(*keys)
        if value is None or isinstance(value, str):
            return default if value is None else value
        self.refuse(self._found(keys), "must be a text", "write a text")
        return default

    def items(self, key: str) -> list[Any] | None:
        """A list, or None where there is none."""
        value = self.document.get(key)
        if value is None or isinstance(value, list):
            return cast("list[Any] | None", value)
        self.refuse(key, "must be a list", "write a list")
        return None

    def per_layer(self, key: str, layers: int) -> list[Any] | None:
        """A list with at least one entry for each layer, cut to that length, or None."""
        values = self.items(key)
        if values is not None and len(values) < layers:
            self.refuse(key, f"must have {layers} entries, one a layer", "add the missing ones")
            return None
        return None if values is None else values[:layers]

    def sub(self, key: str) -> "Config":
        """The mapping under ``key`` (empty if there is none)."""
        value = self.document.get(key)
        if value is not None and not isinstance(value, Mapping):
            self.refuse(key, "must be a mapping", "write `key: value` lines")
        inner: Mapping[str, Any] = {}
        if isinstance(value, Mapping):
            inner = cast("Mapping[str, Any]", value)
        pointer = f"{self.pointer}/{key}"
        return Config(inner, name=self.name, pointer=pointer, violations=self.violations)

    def text(self) -> "Config":
        """The language model's part: ``text_config`` where there is one, else the whole.

        Whether embeddings are tied may be said outside of it.
        """
        if not self.has("text_config"):
            return self
        inner, key = self.sub("text_config"), "tie_word_embeddings"
        if self.has(key) and not inner.has(key):
            inner.document = {**inner.document, key: self.document[key]}
        return inner
