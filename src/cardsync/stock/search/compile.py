"""Compiles the tree of a search, with the seller's own names, into one SQL condition over `card c`
and its bound values. Pure.

A condition that is null counts as false, so a negation is `IS NOT TRUE`. The SQL contains no values
of the search, only names of bound values; the caller binds `:seller` and `:now`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

from cardsync.catalog.collector_number import read_collector_number
from cardsync.platform import limits
from cardsync.platform.shelf_place import Box, Place, way_of
from cardsync.stock.limits import SEARCH_RULE_VALUES
from cardsync.stock.search.fields import (
    CONDITIONS,
    ORDERS,
    QueryError,
    languages_named,
    nearest,
    printings_named,
)
from cardsync.stock.search.flags import (
    AMOUNTS,
    FLAGS,
    ON_LIST,
    SHELVED,
    THINGS,
    new_printing,
    not_sold_for,
    previous_agrees,
)
from cardsync.stock.search.folding import (
    NAME,
    NUMBER,
    RARITY,
    SET,
    TOTAL,
    escaped_for_like,
    folded,
    holding,
    pictures,
    plain_text,
    spellings,
    without_spaces,
    words,
)
from cardsync.stock.search.known_names import KnownNames, name_key
from cardsync.stock.search.tree import (
    And,
    Named,
    Not,
    Or,
    Phrase,
    Range,
    Term,
    Tree,
    Value,
    WordTerm,
)
from cardsync.stock.search.variants import ANY, STAMPS, pattern_of, plain_variant

# No card is older than this number of days, and SQL can subtract it from a time without an
# overflow.
_MOST_DAYS = Decimal(1_000_000)
NOTHING = "false"
EVERYTHING = "true"
# A word is a collector number if it has a total (`4/102`) or begins with `#`.
_COLLECTOR_NUMBER = re.compile(
    r"#?(?=.*\d)[a-z\d]+[★*+]?/[a-z\d-]+|#[a-z\d-]+[★*+]?[a-z]?", re.IGNORECASE | re.ASCII
)


class Where(NamedTuple):
    """A condition. All of its `parts` must hold."""

    sql: str
    values: dict[str, object]
    # The reasons why a saved search selects fewer cards than its text says, such as a deleted list.
    warnings: list[str]
    parts: Sequence[str] = ()


def compile_query(
    tree: Tree,
    known: KnownNames,
    *,
    of_rule: bool = False,
    saved: bool = False,
) -> Where:
    """Compile `tree`. Raises QueryError for a list, rule or game that the seller does not have,
    and for a rule or sale whose query uses rules.

    In a saved search, a missing list counts as empty; if that would select more cards, as in a
    negation, the search selects nothing.
    """
    compiler = _Compiler(known, {}, of_rule, saved)
    parts = compiler.parts(tree)
    return Where(compiler.all_of(parts), compiler.values, compiler.warnings, parts)


class _Compiler:
    def __init__(
        self,
        known: KnownNames,
        values: dict[str, object],
        of_rule: bool,
        saved: bool,
    ) -> None:
        self.known = known
        self.values = values
        self.of_rule = of_rule
        self.saved = saved
        self.warnings: list[str] = []
        self._negations = 0
        self._widened = False
        self._selecting: dict[int, str] | None = None
        self._values_each = self._rule_values = 0

    def bind(self, value: Any) -> str:
        name = f"q{len(self.values)}"
        self.values[name] = value
        return f":{name}"

    def whole(self, tree: Tree) -> str:
        return self.all_of(self.parts(tree))

    def parts(self, tree: Tree) -> list[str]:
        parts = tree.parts if isinstance(tree, And) else (tree,)
        return sorted(map(self.condition, parts), key=_costs)

    def all_of(self, parts: Sequence[str]) -> str:
        return NOTHING if self._widened else _joined(" AND ", parts) or EVERYTHING

    def condition(self, tree: Tree) -> str:
        match tree:
            case WordTerm():
                return self._word(tree.text)
            case Phrase():
                return self._contains(tree.text)
            case Not():
                return self._negated(tree.part)
            case And():
                return _joined(" AND ", self.parts(tree)) or EVERYTHING
            case Or():
                return _joined(" OR ", map(self.condition, tree.parts))
            case Term():
                return self._term(tree)

    def _negated(self, tree: Tree) -> str:
        self._negations += 1
        sql = self.condition(tree)
        self._negations -= 1
        return f"({sql}) IS NOT TRUE"

    def _like(self, *parts: str) -> str:
        """Match the LIKE pattern that consists of these parts. The caller escapes parts that are
        from the search text.
        """
        return f"c.search_text LIKE {self.bind(''.join(parts))}"

    def _word(self, text: str) -> str:
        """Match a word of the name. A word that looks like a collector number also matches the
        number.
        """
        found = [self._words(plain) for plain in spellings(text)]
        if _COLLECTOR_NUMBER.fullmatch(text):
            found.append(self._has_number(text))
        return _joined(" OR ", found)

    def _words(self, plain: str) -> str:
        if not (found := words(plain)):
            return self._has(pictures(plain) or plain)
        return _joined(
            " AND ",
            [self._like("% ", escaped_for_like(word), "%") for word in dict.fromkeys(found)],
        )

    def _contains(self, text: str) -> str:
        return _joined(" OR ", map(self._has, spellings(text)))

    def _has(self, plain: str) -> str:
        return self._like(holding(plain))

    def _term(self, term: Term) -> str:
        if term.field in AMOUNTS:
            return self._measured(term, AMOUNTS[term.field])
        by_field: dict[str, Callable[[Term], str]] = {
            "name": lambda t: self._text(t, NAME, SET, folded),
            "set": self._set,
            "rarity": lambda t: self._text(t, RARITY, NUMBER, plain_text),
            "number": self._number,
            "game": self._game,
            "cond": self._cond,
            "printing": lambda t: self._other(t, "c.printing <> ''", self._printing(t.op)),
            "lang": self._lang,
            "v": lambda t: self._other(t, f"c.search_text ~ {self.bind(ANY)}", self._variant),
            "list": lambda t: self._any(t, lambda value: self._list(t, value)),
            "box": lambda t: self._other(t, SHELVED, self._place),
            "loc": lambda t: self._other(t, SHELVED, self._place),
            "is": lambda t: self._any(t, self._flag),
            "has": lambda t: self._any(t, lambda value: self._thing(t, value)),
            "rule": self._rule,
            "unsold": self._unsold,
        }
        return by_field[term.field](term)

    def _any(self, term: Term, one: Callable[[Any], str]) -> str:
        return _joined(" OR ", map(one, term.values))

    def _other(
        self,
        term: Term,
        present: str,
        one: Callable[[Any], str],
    ) -> str:
        """Match cards with any of the term's values or, with `!=`, cards that have a value other
        than the term's values.
        """
        found = self._any(term, one)
        return f"({present} AND ({found}) IS NOT TRUE)" if term.op == "!=" else found

    def _measured(self, term: Term, expression: str) -> str:
        """Compare the number `expression` with the term's values. The condition is null for cards
        whose `expression` is null.
        """
        if term.op in ORDERS:
            return f"{expression} {term.op} {self._amount(term.values[0])}"
        parts = [self._is_measured(expression, value, term.op == "!=") for value in term.values]
        return _joined(" AND " if term.op == "!=" else " OR ", parts)

    def _is_measured(self, expression: str, value: Value, differs: bool) -> str:
        if not isinstance(value, Range):
            return f"{expression} {'<>' if differs else '='} {self._amount(value)}"
        if value.low is not None and value.high is not None:
            between = "NOT BETWEEN" if differs else "BETWEEN"
            return (
                f"{expression} {between} {self._amount(value.low)} AND {self._amount(value.high)}"
            )
        if value.low is not None:
            return f"{expression} {'<' if differs else '>='} {self._amount(value.low)}"
        return f"{expression} {'>' if differs else '<='} {self._amount(value.high)}"

    def _amount(self, value: Value | None) -> str:
        assert isinstance(value, Decimal)
        return self.bind(int(value) if value == int(value) else value)

    def _unsold(self, term: Term) -> str:
        """Match cards by the days since their last sale. The SQL compares the sales with one fixed
        time, which is cheaper than computing the days of each card.
        """
        if term.op in (">", "<="):
            found = self._unsold_from(_next_day(term.values[0]))
        elif term.op in (">=", "<"):
            found = self._unsold_from(_first_day(term.values[0]))
        else:
            found = self._any(term, self._unsold_in)
        return f"({found}) IS NOT TRUE" if term.op in ("<", "<=", "!=") else found

    def _unsold_in(self, value: Value) -> str:
        low, high = (value.low, value.high) if isinstance(value, Range) else (value, value)
        parts = [] if low is None else [self._unsold_from(_first_day(low))]
        if high is not None:
            parts.append(f"({self._unsold_from(_next_day(high))}) IS NOT TRUE")
        return _joined(" AND ", parts)

    def _unsold_from(self, days: int) -> str:
        return not_sold_for(self.bind(days))

    def _text(
        self,
        term: Term,
        begins: str,
        ends: str,
        fold: Callable[[str], str],
    ) -> str:
        def one(value: str) -> str:
            if term.op == ":" and begins == NAME:
                return self._contains(value)
            return self._like(f"%{begins}", escaped_for_like(fold(value).strip(" ")), f"{ends}%")

        return self._other(term, self._present(begins, ends), one)

    def _present(self, begins: str, ends: str) -> str:
        return f"c.search_text NOT LIKE {self.bind(f'%{begins}{ends}%')}"

    def _set(self, term: Term) -> str:
        def one(value: str) -> str:
            inner = escaped_for_like(
                plain_text(value) if term.op != ":" else without_spaces(folded(value))
            )
            around = "%" if term.op == ":" else ""
            code = self.bind(folded(value).strip(" "))
            coded = (
                "c.product_id IN (SELECT p.id FROM product p"
                f" WHERE p.set_code IS NOT NULL AND lower(p.set_code) = {code})"
            )
            return f"({self._like(f'%{SET}{around}', inner, f'{around}{RARITY}%')} OR {coded})"

        return self._other(term, self._present(SET, RARITY), one)

    def _number(self, term: Term) -> str:
        if term.op in ORDERS:
            return self._measured(term, "c.number_leading")

        def one(value: Value) -> str:
            if isinstance(value, Range):
                return self._is_measured("c.number_leading", value, False)
            return self._has_number(str(value))

        return self._other(term, self._present(NUMBER, TOTAL), one)

    def _has_number(self, text: str) -> str:
        number = read_collector_number(text)
        key = escaped_for_like(number.key)
        total = escaped_for_like(number.total or "")
        if not total:
            return self._like(f"%{NUMBER}{key}{TOTAL}%")
        return _joined(" OR ", [self._like(f"%{NUMBER}{key}{TOTAL}{end}") for end in (total, "")])

    def _game(self, term: Term) -> str:
        lines = {folded(line): line for line in self.known.lines}
        for value in term.values:
            if value not in lines:
                raise QueryError(
                    f"game: {value!r} is not a product line",
                    term.at,
                    nearest(str(value), self.known.lines),
                )
        return self._one_of(
            "c.product_line",
            term,
            [lines[str(value)] for value in term.values],
        )

    def _one_of(self, column: str, term: Term, values: list[Any]) -> str:
        listed = f"(CAST({self.bind(values)} AS text[]))"
        return f"{column} {'<> ALL' if term.op == '!=' else '= ANY'} {listed}"

    def _cond(self, term: Term) -> str:
        if term.op not in ORDERS:
            return self._one_of("c.condition", term, list(term.values))
        ordered = CONDITIONS[:-1]
        place = ordered.index(str(term.values[0]))
        inside = {
            "<": ordered[:place],
            "<=": ordered[: place + 1],
            ">": ordered[place + 1 :],
            ">=": ordered[place:],
        }
        return f"c.condition = ANY (CAST({self.bind(list(inside[term.op]))} AS text[]))"

    def _printing(self, op: str) -> Callable[[Any], str]:
        def one(value: Value) -> str:
            names, like = printings_named(str(value), op)
            listed = f"c.printing = ANY (CAST({self.bind(names)} AS text[]))"
            return f"({listed} OR {new_printing(self.bind(like))})" if like else listed

        return one

    def _lang(self, term: Term) -> str:
        """Match cards by language. With `!=`, cards whose label names no known language do not
        match.
        """
        values = [name for value in term.values for name in languages_named(str(value))]
        return self._one_of("c.language", term, [*values, ""] if term.op == "!=" else values)

    def _variant(self, value: str) -> str:
        found = self._variants([value])
        # Only Japanese cards were ever printed without a rarity symbol.
        return f"({found} AND c.product_line = 'pokemon_japan')" if value == "No Rarity" else found

    def _variants(self, values: list[str]) -> str:
        """Match cards that have one of these variants.

        Few cards have a variant. LIKE patterns, which cost less than the regular expression,
        exclude the other cards. CASE makes PostgreSQL evaluate the LIKE patterns before the regular
        expression.
        """
        pattern = pattern_of(values)
        if pattern is None:
            return NOTHING
        looks = self._holds_any(map(plain_variant, values))
        if len(values) > 1:
            looks = f"{self._holds_any('([')} AND {looks}"
        return f"(CASE WHEN {looks} THEN c.search_text ~ {self.bind(pattern)} ELSE false END)"

    def _holds_any(self, texts: Iterable[str]) -> str:
        """Match search texts that contain one of these texts. A space in a text matches any
        characters, because the search text may have another character instead of the space.
        """
        return _joined(
            " OR ", [self._like("%", escaped_for_like(one).replace(" ", "%"), "%") for one in texts]
        )

    def _list(self, term: Term, value: Value) -> str:
        known = self.known.list_names if isinstance(value, Named) else self.known.lists
        name = name_key(value.name) if isinstance(value, Named) else str(value)
        if (found := known.get(name)) is None:
            if not self.saved:
                raise QueryError(f"list: there is no list {name!r}", term.at, nearest(name, known))
            self.warnings.append(f"there is no list {name!r}")
            self._widened |= self._negations % 2 == 1
            return NOTHING
        return f"c.id IN ({ON_LIST} AND e.list_id = {self.bind(found)})"

    def _place(self, value: Value) -> str:
        match value:
            case Place(box, slot):
                at = f"{self._box(box)} AND l.slot = {self.bind(slot)}"
            case Range(low, high):
                # A range selects numbered boxes only; the internal numbers of labeled boxes are
                # above `SHELF_NUMBER`.
                last = min(int(high or limits.SHELF_NUMBER), limits.SHELF_NUMBER)
                at = f"l.box BETWEEN {self.bind(int(low or 1))} AND {self.bind(last)}"
            case str():
                at = self._box(value)
            case _:
                at = f"l.box = {self._amount(value)}"
        return (
            f"c.id IN (SELECT l.card_id FROM card_location l WHERE l.seller_id = :seller AND {at})"
        )

    def _box(self, box: Box) -> str:
        if isinstance(box, int):
            return f"l.box = {self.bind(box)}"
        labeled = "SELECT b.box FROM shelf_box b WHERE b.seller_id = :seller AND b.way ="
        return f"l.box = ({labeled} {self.bind(way_of(box))})"

    def _flag(self, value: str) -> str:
        if value == "stamped":
            return self._variants(list(STAMPS))
        if value in ("confirmed", "in-flux"):
            agreed = self._agreed()
            agrees = f"({agreed}){'' if value == 'confirmed' else ' IS NOT TRUE'}"
            # No upload contains a contribution, so no upload can confirm its quantity.
            return f"(NOT c.gone AND c.contribution IS NULL AND {agrees})"
        return FLAGS[value]

    def _agreed(self) -> str:
        """Match cards whose quantity was observed twice: the previous observation has the same
        quantity, or a later upload of the card's whole product line did not change the quantity.
        """
        later = [
            f"(c.product_line = {self.bind(line)} AND c.observed_at < {self.bind(at)})"
            for line, at in self.known.seen.items()
        ]
        seen_again = _joined(" OR ", later) or NOTHING
        return f"{seen_again} OR c.id IN ({previous_agrees(seen_again)})"

    def _thing(self, term: Term, value: str) -> str:
        if value == "rule":
            return _joined(" OR ", self._rules(term).values()) or NOTHING
        return THINGS[value]

    def _rule(self, term: Term) -> str:
        """Match a card if the first rule that selects it is one of the term's rules, or if one of
        the term's guards selects it.
        """
        selecting = self._rules(term)
        wanted = {id for value in term.values for id in self._rule_ids(term, value)}
        found = [*self._guards(wanted, term)]
        if wanted & selecting.keys():
            found.append(self._governed(selecting, wanted))
        return f"({' OR '.join(found)})" if found else NOTHING

    def _guards(self, wanted: set[int], term: Term) -> Iterator[str]:
        """Yield the conditions of the wanted guards. A guard whose query can't be parsed any more
        has no condition, so `rule:` finds no cards by it, although such a guard blocks the pricing
        of all cards.
        """
        before = len(self.values)
        for guard in self.known.guards:
            if guard.id in wanted and guard.tree is not None:
                with suppress(QueryError):
                    of_guard = _Compiler(self.known, self.values, of_rule=True, saved=True)
                    yield f"({of_guard.whole(guard.tree)})"
                self._need_few(len(self.values) - before, term)

    @staticmethod
    def _governed(selecting: Mapping[int, str], wanted: set[int]) -> str:
        whens = " ".join(f"WHEN {sql} THEN {int(id)}" for id, sql in selecting.items())
        return f"(CASE {whens} END) IN ({', '.join(str(int(id)) for id in sorted(wanted))})"

    def _rule_ids(self, term: Term, value: Value) -> list[int]:
        live = (*self.known.rules, *self.known.guards)
        ids = {rule.id: rule.name for rule in live} | dict(self.known.idle_rules)
        if isinstance(value, Named):
            wanted = name_key(value.name)
            found = [id for id, name in ids.items() if name_key(name) == wanted]
        else:
            found = [id for id in ids if id == value]
        if not found:
            value_text = value.name if isinstance(value, Named) else f"{value}"
            raise QueryError(
                f"rule: there is no rule {value_text!r}",
                term.at,
                nearest(value_text, ids.values()),
            )
        return found

    def _rules(self, term: Term) -> dict[int, str]:
        """Return the condition of each enabled base rule by rule id, in the order of the rules.

        The conditions are compiled once per search. They still count toward the limit on values for
        each term that uses them, because the SQL of each such term contains all of them.
        """
        if self.of_rule:
            raise QueryError(f"{term.field}: a rule or a promotion can't search by rule", term.at)
        before = len(self.values)
        if self._selecting is None:
            self._selecting = dict(self._selections(term))
            self._values_each = len(self.values) - before
        self._rule_values += self._values_each
        self._need_few(self._rule_values, term)
        return self._selecting

    def _selections(self, term: Term) -> Iterator[tuple[int, str]]:
        """Yield the id and the condition of each rule before the first rule whose query is invalid:
        it can't be parsed, or it names a list that does not exist. Such a rule blocks all rules
        after it.
        """
        before = len(self.values)
        for rule in self.known.rules:
            try:
                if rule.tree is None:
                    return
                yield (
                    rule.id,
                    _Compiler(self.known, self.values, of_rule=True, saved=True).whole(rule.tree),
                )
            except QueryError:
                return
            self._need_few(len(self.values) - before, term)

    def _need_few(self, values: int, term: Term) -> None:
        if values > SEARCH_RULE_VALUES:
            most = f"{SEARCH_RULE_VALUES:,}"
            raise QueryError(
                f"{term.field}: the rules have more than {most} terms to compare with", term.at
            )


def _first_day(value: Value | None) -> int:
    """Return the smallest whole number of days that is at least `value`."""
    assert isinstance(value, Decimal)
    return int(min(max(value, -_MOST_DAYS), _MOST_DAYS).to_integral_value(ROUND_CEILING))


def _next_day(value: Value | None) -> int:
    """Return the smallest whole number of days that is more than `value`."""
    assert isinstance(value, Decimal)
    return int(min(max(value, -_MOST_DAYS), _MOST_DAYS).to_integral_value(ROUND_FLOOR)) + 1


def _joined(sign: str, parts: Iterable[str]) -> str:
    listed = list(parts)
    if len(listed) < 2:
        return "".join(listed)
    return f"({sign.join(f'({part})' for part in listed)})"


def _costs(sql: str) -> tuple[bool, bool]:
    """Return a sort key for conditions; cheap conditions have the smallest keys. PostgreSQL does
    not reorder the conditions, because it estimates that a subquery or a text search costs as
    little as a comparison.
    """
    return "SELECT" in sql, "search_text" in sql
