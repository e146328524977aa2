"""The fold of pull marks: whatever phones do offline, every copy is pulled at most once, and
nothing is lost.
"""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import schedule
from cardsync.sales.pulling.progress import Mark, fold, undone_by


def mark(id, kind="pulled", item=1, quantity=1, undoes="", device="a", person=""):
    return Mark(id, kind, item, device, person, quantity, undoes)


def test_a_second_pull_of_the_same_copy_is_surplus():
    progress = fold({1: 1}, [], [mark("a", person="Ada"), mark("b", person="Bea")])
    assert (progress.lines[1].pulled, progress.lines[1].surplus) == (1, 1)
    assert progress.outcomes == {"a": "counted", "b": "surplus"}
    assert (progress.surplus, progress.by_person) == ({"b": 1}, {"Ada": 1})


def test_an_undo_counts_before_its_mark_too():
    undo = mark("u", "undo", undoes="a")
    for marks in ([mark("a"), undo], [undo, mark("a")]):
        progress = fold({1: 1}, [], marks)
        assert (progress.lines[1].state, progress.outcomes["a"]) == ("waiting", "undone")


def test_an_undone_pull_lets_the_next_one_count():
    marks = [mark("a"), mark("b"), mark("u", "undo", undoes="a")]
    progress = fold({1: 1}, [], marks)
    assert (progress.lines[1].pulled, progress.lines[1].surplus) == (1, 0)


def test_what_is_pulled_of_a_cancelled_order_is_to_be_put_back():
    progress = fold({1: 2}, [1], [mark("a", quantity=2)])
    assert (progress.lines[1].state, progress.surplus) == ("stopped", {"a": 2})


def test_a_mark_on_a_card_that_left_the_pull_stands_as_gone():
    progress = fold({}, [], [mark("a"), mark("b", "missing")])
    assert (progress.outcomes, progress.surplus) == ({"a": "gone", "b": "gone"}, {"a": 1})


def test_an_undo_cannot_be_undone():
    marks = [mark("a"), mark("u", "undo", undoes="a"), mark("v", "undo", undoes="u")]
    assert undone_by(marks) == {"a"}


IDS = st.sampled_from("abcdefgh")
MARKS = st.lists(
    st.builds(
        mark,
        IDS,
        st.sampled_from(["pulled", "defer", "missing"]),
        st.integers(1, 3),
        st.integers(1, 3),
    ),
    max_size=8,
    unique_by=lambda one: one.id,
)


@given(MARKS, st.data())
def test_order_and_repetition_change_no_total(marks, data):
    undos = [mark(f"undo-{id}", "undo", undoes=id) for id in data.draw(st.lists(IDS, unique=True))]
    told = [*marks, *undos]
    shuffled = data.draw(st.permutations(told + data.draw(st.permutations(told))))
    one, other = fold({1: 2, 2: 3}, [], told), fold({1: 2, 2: 3}, [], shuffled)
    for item in (1, 2):
        a, b = one.lines[item], other.lines[item]
        assert (a.pulled, a.surplus, a.state) == (b.pulled, b.surplus, b.state)
    assert one.outcomes.keys() == other.outcomes.keys() == {m.id for m in told}


class Phones(RuleBasedStateMachine):
    """Two to four phones, each with an outbox that is sent late, in any order, and again."""

    @initialize(
        phones=st.integers(2, 4), wanted=st.lists(st.integers(1, 4), min_size=1, max_size=5)
    )
    def begin(self, phones, wanted):
        self.numbers = itertools.count()
        self.wanted = dict(enumerate(wanted))
        self.stopped = set()
        self.outboxes = [[] for _ in range(phones)]
        self.sent = []
        self.received = {}
        self.in_hand = dict.fromkeys(self.wanted, 0)

    def _outbox(self, phone):
        return self.outboxes[phone % len(self.outboxes)]

    def _item(self, item):
        return item % len(self.wanted)

    @rule(phone=st.integers(0, 3), item=st.integers(0, 4), quantity=st.integers(1, 3))
    def pull(self, phone, item, quantity):
        item = self._item(item)
        made = mark(f"m{next(self.numbers)}", "pulled", item, quantity, device=str(phone))
        self._outbox(phone).append(made)
        self.in_hand[item] += quantity

    @rule(
        phone=st.integers(0, 3), item=st.integers(0, 4), kind=st.sampled_from(["defer", "missing"])
    )
    def say(self, phone, item, kind):
        made = mark(f"m{next(self.numbers)}", kind, self._item(item), device=str(phone))
        self._outbox(phone).append(made)

    @rule(phone=st.integers(0, 3), which=st.integers(0, 50))
    def undo(self, phone, which):
        known = [m for m in [*self._outbox(phone), *self.sent] if m.kind == "pulled"]
        undone = {m.undoes for box in [*self.outboxes, self.sent] for m in box}
        known = [m for m in known if m.id not in undone]
        if known:
            target = known[which % len(known)]
            id = f"m{next(self.numbers)}"
            self._outbox(phone).append(mark(id, "undo", target.item_id, undoes=target.id))
            self.in_hand[target.item_id] -= target.quantity

    @rule(phone=st.integers(0, 3), data=st.data())
    def send(self, phone, data):
        box = self._outbox(phone)
        for one in data.draw(st.permutations(box)):
            self._receive(one)
        self.sent.extend(box)
        box.clear()

    @rule(data=st.data())
    def send_again(self, data):
        if self.sent:
            self._receive(data.draw(st.sampled_from(self.sent)))

    @rule(item=st.integers(0, 4))
    def cancel(self, item):
        self.stopped.add(self._item(item))

    def _receive(self, one):
        self.received.setdefault(one.id, one)

    def _now(self):
        return fold(self.wanted, self.stopped, self.received.values())

    @invariant()
    def every_copy_is_pulled_at_most_once(self):
        if hasattr(self, "wanted"):
            for item, line in self._now().lines.items():
                assert 0 <= line.pulled <= self.wanted[item]
                assert not (item in self.stopped and line.pulled)

    @invariant()
    def every_mark_has_an_outcome(self):
        if hasattr(self, "wanted"):
            assert self._now().outcomes.keys() == self.received.keys()

    def teardown(self):
        """Once all is sent, what is in hand is what is pulled and what is to be put back."""
        if not hasattr(self, "wanted"):
            return
        for box in self.outboxes:
            for one in box:
                self._receive(one)
        progress = self._now()
        for item, line in progress.lines.items():
            assert line.pulled + line.surplus == self.in_hand[item]
        assert sum(progress.by_person.values()) == sum(x.pulled for x in progress.lines.values())
        assert sum(progress.surplus.values()) == sum(x.surplus for x in progress.lines.values())


TestPhones = Phones.TestCase
TestPhones.settings = settings(
    max_examples=schedule.examples(15, 60), stateful_step_count=30, deadline=None
)
