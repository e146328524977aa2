"""What is reported, when, and how it is signed: pure cases."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from standardwebhooks import Webhook as Reader
from standardwebhooks import WebhookVerificationError

from cardsync.platform.settings import Settings
from cardsync.shop.notices.mail_server import MailServer, read_mail_url
from cardsync.shop.notices.news import NewsItem, Reported, news, of_conditions
from cardsync.shop.notices.next_times import THREE_DAYS, next_digest, next_try
from cardsync.shop.notices.notice_kinds import (
    EVENTS,
    KINDS,
    LEFT_OUT,
    OF_TODAY,
    kinds_for,
    way_of,
)
from cardsync.shop.notices.unsubscribe_links import Unsubscriber, read_token, unsubscribe_url
from cardsync.shop.notices.webhook_signature import (
    Unsealed,
    new_message_id,
    new_secret,
    sealed,
    signed_headers,
    unsealed,
)
from cardsync.shop.today.shop_facts import Condition, Kind

NOW = datetime(2026, 11, 26, 15, 30, tzinfo=UTC)


def a_condition(kind: Kind = "agent_silent", severity="warn", **fields) -> Condition:
    return Condition(kind, severity, "It is so", "See it", "/today", **fields)


def found(*conditions: Condition) -> list[NewsItem]:
    return of_conditions(conditions)


def reported(*conditions: Condition) -> list[Reported]:
    return [Reported(n, one.key, one.severity) for n, one in enumerate(found(*conditions), 1)]


SILENT = a_condition()
LONG = replace(SILENT, severity="bad")
ORDERS = a_condition("orders_to_pull", "info", owner_only=False)
REFRESH = a_condition("task_failed", "bad", variant="refresh_orders")
PRICES = a_condition("task_failed", "bad", variant="apply_price_updates")
RUN_1 = a_condition("run_in_review", "bad", subject=1)
RUN_2 = replace(RUN_1, subject=2)


@pytest.mark.parametrize(
    ("before", "now", "begun", "ended"),
    [
        ([], [SILENT], ["agent_silent:"], []),
        ([SILENT], [SILENT], [], []),
        ([SILENT], [], [], [1]),
        # It becomes worse: once more. It becomes better: not again, nor when it is as bad again.
        ([SILENT], [LONG], ["agent_silent:"], [1]),
        ([LONG], [SILENT], [], []),
        ([LONG], [LONG], [], []),
        # A count or a sentence that changes is no news.
        ([SILENT], [replace(SILENT, title="It is still so", count=7)], [], []),
        # Kinds of task are apart, and so are the runs to review.
        ([REFRESH], [REFRESH, PRICES], ["task_failed:apply_price_updates"], []),
        ([RUN_1], [RUN_2], ["run_in_review:2"], [1]),
        # Orders wait in most shops at all times: their deadline is what is reported.
        ([], [ORDERS], [], []),
        ([], [replace(ORDERS, severity="warn")], ["orders_to_pull:"], []),
        ([], [a_condition("pull_under_way", "bad")], [], []),
    ],
)
def test_a_condition_is_reported_once_while_it_lasts(before, now, begun, ended):
    changed = news(reported(*before), found(*now))
    assert ([one.key for one in changed.begun], changed.ended) == (begun, ended)


def test_every_condition_of_today_has_its_words_and_nothing_else_has():
    assert set(OF_TODAY) | LEFT_OUT == set(get_args(Kind))
    assert set(KINDS) == set(OF_TODAY) | set(EVENTS)
    assert not set(OF_TODAY) & set(EVENTS)


@pytest.mark.parametrize(
    ("kind", "role", "chosen", "way"),
    [
        ("agent_silent", "owner", {}, "at_once"),
        ("agent_silent", "staff", {}, "never"),
        ("agent_silent", "staff", {"agent_silent": "daily"}, "daily"),
        ("orders_new", "staff", {}, "daily"),
        # What is an owner's, no choice brings to staff.
        ("run_in_review", "staff", {"run_in_review": "at_once"}, "never"),
        ("run_in_review", "owner", {"run_in_review": "never"}, "never"),
        # A way that no longer exists is as none.
        ("run_in_review", "owner", {"run_in_review": "weekly"}, "at_once"),
        ("forgotten", "owner", {"forgotten": "daily"}, "never"),
    ],
)
def test_a_member_gets_what_the_role_and_the_choice_allow(kind, role, chosen, way):
    assert way_of(kind, role, chosen) == way


def test_staff_may_choose_fewer_kinds():
    assert set(kinds_for("staff")) < set(kinds_for("owner")) == set(KINDS)


def test_a_message_is_tried_ten_times_in_three_days():
    first = now = NOW
    pauses = []
    while (at := next_try(len(pauses) + 1, first, now, "msg_1")) is not None:
        pauses.append(at - now)
        now = at
    plain = [timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2)]
    for pause, least in zip(pauses, plain, strict=False):
        assert least <= pause <= least * 1.1
    assert len(pauses) == 9
    assert pauses[:-1] == sorted(pauses[:-1])
    assert now - first == THREE_DAYS
    # However late a try was, the last one is at the end of the three days.
    assert next_try(3, first, first + THREE_DAYS - timedelta(seconds=1), "m") == first + THREE_DAYS
    assert next_try(3, first, first + THREE_DAYS, "m") is None
    assert next_try(40, first, NOW, "m") == first + THREE_DAYS


def test_messages_that_failed_together_are_not_sent_again_together():
    times = {next_try(5, NOW, NOW, f"msg_{n}") for n in range(20)}
    assert len(times) == 20


@pytest.mark.parametrize(
    ("now", "zone", "at"),
    [
        ("2026-11-26T12:59:00+00:00", "America/New_York", "2026-11-26T13:00:00+00:00"),
        ("2026-11-26T13:00:00+00:00", "America/New_York", "2026-11-27T13:00:00+00:00"),
        ("2026-11-26T23:30:00+00:00", "Asia/Tokyo", "2026-11-27T23:00:00+00:00"),
        # The clocks go back in the night before.
        ("2026-10-24T20:00:00+00:00", "Europe/Berlin", "2026-10-25T07:00:00+00:00"),
    ],
)
def test_a_digest_is_due_at_eight_in_the_shop(now, zone, at):
    assert next_digest(datetime.fromisoformat(now), zone) == datetime.fromisoformat(at)


def test_the_example_of_the_specification_is_signed_as_it_says():
    headers = signed_headers(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_official_reader_accepts_either_of_two_secrets_and_nothing_changed():
    new, former, other = new_secret(), new_secret(), new_secret()
    message_id, body = new_message_id(), b'{"type":"test"}'
    headers = signed_headers([new, former], message_id, int(datetime.now(UTC).timestamp()), body)
    for secret in (new, former):
        assert Reader(secret).verify(body, headers) == {"type": "test"}
    for secret, sent, given in (
        (other, body, headers),
        (new, body + b" ", headers),
        (new, body, headers | {"webhook-id": "msg_other"}),
        (new, body, headers | {"webhook-timestamp": "1614265330"}),
    ):
        with pytest.raises(WebhookVerificationError):
            Reader(secret).verify(sent, given)
    assert len(base64.b64decode(new.removeprefix("whsec_"))) == 32


def test_a_sealed_secret_opens_for_its_seller_and_installation_alone():
    mine, other = Settings(secret_key="a" * 32), Settings(secret_key="b" * 32)
    kept = sealed(mine, 1, "whsec_x")
    assert unsealed(mine, 1, kept) == "whsec_x"
    assert b"whsec" not in kept
    for settings, seller_id in ((other, 1), (mine, 2)):
        with pytest.raises(Unsealed):
            unsealed(settings, seller_id, kept)


def test_the_link_to_unsubscribe_is_of_one_member_and_cannot_be_made_up():
    settings = Settings(secret_key="a" * 32, public_url="https://shop.example")
    url = unsubscribe_url(settings, Unsubscriber(7, 12))
    token = url.removeprefix("https://shop.example/unsubscribe/")
    assert read_token(settings, token) == (7, 12)
    for wrong in (token[:-1], token.replace("12", "13", 1), "7-12-", "", "x" * 3000):
        assert read_token(settings, wrong) is None
    assert read_token(Settings(secret_key="b" * 32), token) is None


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.example", MailServer("mail.example", 587, None, None, False, None)),
        ("smtp://mail.example:25", MailServer("mail.example", 25, None, None, False, None)),
        ("smtp://a:p%40ss@mail.example", MailServer("mail.example", 587, "a", "p@ss", False, True)),
        ("smtp://a:b@localhost:1025", MailServer("localhost", 1025, "a", "b", False, None)),
        ("smtps://a:b@mail.example", MailServer("mail.example", 465, "a", "b", True, False)),
    ],
)
def test_a_password_is_sent_only_to_this_machine_or_encrypted(url, server):
    assert read_mail_url(url) == server


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mail_url", "mail.example:587"),
        ("mail_url", "http://mail.example"),
        ("mail_url", "smtp://a:sesame@"),
        ("mail_url", "smtp://a:sesame@host:port"),
        ("mail_from", "nobody"),
        ("mail_from", "a@b.example\r\nBcc: c@d.example"),
    ],
)
def test_settings_of_mail_that_cannot_be_read_are_refused_without_the_password(name, value):
    with pytest.raises(ValueError, match=name) as refused:
        Settings(**{name: value})
    assert "sesame" not in str(refused.value)
