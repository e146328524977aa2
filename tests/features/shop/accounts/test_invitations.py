"""Members join by invitation and come back by a new link; each link is good once."""

import asyncio
from datetime import timedelta

import pytest

from browsers import A_PASSWORD, accept, invited, joined, reset, signed_in
from cardsync.platform import clock
from cardsync.shop.accounts import roster
from cardsync.shop.accounts.invitations import MemberError


async def removed(service, member_id: int) -> str:
    """The reason why the member cannot be removed, or an empty text."""
    try:
        async with service.database.shared() as session:
            await roster.remove(session, member_id)
    except MemberError as e:
        return str(e)
    return ""


async def test_who_accepts_has_joined_and_is_signed_in(a_seller):
    seller = await a_seller()
    member_id, token = await invited(seller, f"bea-{seller.email}")
    answer, browser = await accept(seller.service, token, name="  Bea  Bell ", password=A_PASSWORD)
    assert answer.status_code == 201
    assert answer.json()["member"] == {
        "id": member_id, "name": "Bea Bell", "email": f"bea-{seller.email}", "role": "staff",
    }  # fmt: skip
    assert answer.json()["seller"] == {"id": seller.id, "name": "A Seller"}
    assert await browser.is_in()
    assert await (await signed_in(seller, f"bea-{seller.email}", A_PASSWORD)).is_in()


async def test_before_that_nobody_signs_in_with_that_address(a_seller, service):
    seller = await a_seller()
    await invited(seller, f"bea-{seller.email}")
    async with service.client() as http:
        answer = await http.post(
            "/api/session", json={"email": f"bea-{seller.email}", "password": ""}
        )
    assert (answer.status_code, answer.json()["code"]) == (401, "invalid_credentials")


async def test_a_link_is_good_once(a_seller):
    seller = await a_seller()
    _, token = await invited(seller, f"bea-{seller.email}")
    await accept(seller.service, token, name="Bea", password=A_PASSWORD)
    answer, _ = await accept(seller.service, token, name="Eve", password="someone else")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "ask for a new one" in answer.json()["error"]


async def test_of_two_who_accept_at_once_one_does(a_seller):
    seller = await a_seller()
    for round_ in range(4):
        email = f"b{round_}-{seller.email}"
        _, token = await invited(seller, email)
        told = await asyncio.gather(
            *(
                accept(seller.service, token, name=f"N{n}", password=f"password {n}")
                for n in range(4)
            )
        )
        assert sorted(answer.status_code for answer, _ in told) == [201, 404, 404, 404]
        [winner] = [n for n, (answer, _) in enumerate(told) if answer.status_code == 201]
        assert (await signed_in(seller, email, f"password {winner}")).session["member"][
            "name"
        ] == f"N{winner}"


async def test_a_link_is_good_for_seven_days(a_seller):
    seller = await a_seller()
    _, token = await invited(seller, f"bea-{seller.email}")
    _, late = await invited(seller, f"cleo-{seller.email}")
    clock.shift(timedelta(days=6, hours=23))
    assert (await accept(seller.service, token, name="Bea", password=A_PASSWORD))[
        0
    ].status_code == 201
    clock.shift(timedelta(hours=2))
    assert (await accept(seller.service, late, name="Cleo", password=A_PASSWORD))[
        0
    ].status_code == 404


async def test_inviting_again_renews_the_link_and_sets_the_role(a_seller):
    seller = await a_seller()
    first, old = await invited(seller, f"bea-{seller.email}")
    second, new = await invited(seller, f"BEA-{seller.email}", "owner")
    assert first == second
    assert (await accept(seller.service, old, name="Bea", password=A_PASSWORD))[
        0
    ].status_code == 404
    _, bea = await accept(seller.service, new, name="Bea", password=A_PASSWORD)
    assert bea.session["member"]["role"] == "owner"


async def test_two_who_invite_the_same_person_at_once_invite_one_person(a_seller):
    seller = await a_seller()
    made = await asyncio.gather(*(invited(seller, f"bea-{seller.email}") for _ in range(4)))
    assert len({member_id for member_id, _ in made}) == 1
    good = [
        (await accept(seller.service, t, name="Bea", password=A_PASSWORD))[0].status_code
        for _, t in made
    ]
    assert sorted(good) == [201, 404, 404, 404]


async def test_an_address_belongs_to_one_member_of_one_seller(a_seller):
    mine, theirs = await a_seller(), await a_seller()
    for taken in (mine.email, theirs.email.upper()):
        with pytest.raises(MemberError, match=r"belongs to|has already joined"):
            await invited(mine, taken)
    await invited(theirs, f"bea-{theirs.email}")
    with pytest.raises(MemberError, match=r"belongs to|has already joined"):
        await invited(mine, f"bea-{theirs.email}")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"name": "Bea", "password": "short"}, "password"),
        ({"name": "Bea", "password": "x" * 1001}, "password"),
        ({"name": "Bea"}, "password"),
        ({"name": " ", "password": A_PASSWORD}, "name"),
        ({"password": A_PASSWORD}, "name"),
        ({"name": "x" * 101, "password": A_PASSWORD}, "name"),
        ({"name": 7, "password": A_PASSWORD}, "name"),
    ],
)
async def test_what_is_refused_leaves_the_link_good(a_seller, body, names):
    seller = await a_seller()
    _, token = await invited(seller, f"bea-{seller.email}")
    answer, _ = await accept(seller.service, token, **body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_payload")
    assert names in answer.json()["error"]
    assert (await accept(seller.service, token, name="Bea", password=A_PASSWORD))[
        0
    ].status_code == 201


@pytest.mark.parametrize("token", ["x", "a" * 43, "a" * 2000, "%00", "..%2f"])
async def test_a_token_that_nobody_has_is_not_found(service, token):
    answer, _ = await accept(service, token, name="Bea", password=A_PASSWORD)
    assert answer.status_code == 404


async def test_a_suspended_sellers_invitation_waits(a_seller):
    seller = await a_seller()
    _, token = await invited(seller, f"bea-{seller.email}")
    await seller.set(suspended=True)
    answer, _ = await accept(seller.service, token, name="Bea", password=A_PASSWORD)
    assert (answer.status_code, answer.json()["code"]) == (403, "account_suspended")
    await seller.set(suspended=False)
    assert (await accept(seller.service, token, name="Bea", password=A_PASSWORD))[
        0
    ].status_code == 201


async def test_a_new_password_ends_every_session_and_keeps_the_name(a_seller, service):
    seller = await a_seller()
    here, there = await signed_in(seller), await signed_in(seller)
    token = await reset(seller, here.member_id)
    assert await here.is_in()
    answer, browser = await accept(service, token, password="a better password")
    assert (answer.status_code, answer.json()["member"]["name"]) == (201, "A Seller")
    assert not await here.is_in()
    assert not await there.is_in()
    assert await browser.is_in()
    old = await browser.http.post(
        "/api/session", json={"email": seller.email, "password": seller.password}
    )
    assert old.status_code == 401


async def test_removing_a_member_takes_the_invitation_along(a_seller, service):
    seller = await a_seller()
    member_id, token = await invited(seller, f"bea-{seller.email}")
    assert await removed(service, member_id) == ""
    assert (await accept(service, token, name="Bea", password=A_PASSWORD))[0].status_code == 404


async def test_an_account_keeps_an_owner_who_has_joined(a_seller, service):
    seller = await a_seller()
    owner = await signed_in(seller)
    await invited(seller, f"late-{seller.email}", "owner")
    await joined(seller, f"bea-{seller.email}")
    assert "only owner" in await removed(service, owner.member_id)
    with pytest.raises(MemberError, match="only owner"):
        async with service.database.shared() as session:
            await roster.change_role(session, owner.member_id, "staff")
    assert await owner.is_in()


async def test_two_owners_cannot_remove_each_other_at_once(a_seller, service):
    seller = await a_seller()
    one, two = await signed_in(seller), await joined(seller, f"o-{seller.email}", "owner")
    told = await asyncio.gather(removed(service, one.member_id), removed(service, two.member_id))
    assert sorted(map(bool, told)) == [False, True]
    assert sorted([await one.is_in(), await two.is_in()]) == [False, True]
