"""GET /export/price-updates: its bytes, why it is empty, and when it need not be sent again."""

import itertools
from datetime import timedelta

import pytest
from sqlalchemy import text

from builders import HEADER, a_csv, a_row, read_csv
from cardsync.agents.agentwork.tasks import enqueue_task, note_due
from cardsync.platform import clock

HEADER_ONLY = (",".join(HEADER) + "\r\n").encode()
REASON = "X-Price-Export-Empty-Reason"


async def a_priced_seller(a_seller, **options):
    seller = await a_seller(**options)
    await seller.import_csv(a_csv(a_row(1, market="1.20"), a_row(2, market="1.00")))
    return seller


async def a_reader(a_seller):
    """A read_only seller with one change to export, and the ETag of that export."""
    seller = await a_priced_seller(a_seller, sync_mode="read_only")
    return seller, (await seller.export()).headers["ETag"]


async def again(seller, *tags):
    return await seller.export(**{"If-None-Match": ", ".join(tags)})


@pytest.mark.night
async def test_the_file_is_the_marketplaces_own_format_to_the_byte(a_seller):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(
            a_row(10, name="Fable, the \"First\"", market="2", price="1.5", low="", quantity=3),
            a_row(9, market="1.2", direct="0.99999", low="1.00005"),
        )
    )  # fmt: skip
    export = await seller.export()
    assert export.headers["Content-Type"].startswith("text/csv")
    assert export.content == HEADER_ONLY + (
        b'"9","Magic","Dominaria United","Card 9","","9","C","Near Mint","1.2000","1.0000",'
        b'"2.3100","1.0001","1","0","1.1900",""\r\n'
        b'"10","Magic","Dominaria United","Fable, the ""First""","","10","C","Near Mint","2.0000",'
        b'"","2.3100","","3","0","1.9800",""\r\n'
    )


@pytest.mark.night
async def test_only_cards_whose_target_differs_are_exported_and_by_id(a_seller):
    seller = await a_seller()
    ids = [30, 2, 100, 11, 1]
    await seller.import_csv(
        a_csv(
            *(a_row(n, market="1.50") for n in ids),
            a_row(5, market="1.00"),
            a_row(6, market="", low=""),
        )
    )
    assert [row["TCGplayer Id"] for row in read_csv((await seller.export()).content)] == [
        "1",
        "2",
        "11",
        "30",
        "100",
    ]


@pytest.mark.night
async def test_equal_content_is_equal_bytes_whatever_the_order_it_came_in(a_seller):
    seller, other = await a_seller(), await a_seller()
    rows = [a_row(n) for n in range(1, 120)]
    await seller.import_csv(a_csv(*rows))
    await other.import_csv(a_csv(*reversed(rows)))
    assert (await seller.export()).content == (await other.export()).content


@pytest.mark.night
async def test_no_price_below_a_cent_is_asked_for(a_seller):
    seller = await a_seller()
    await seller.import_csv(
        a_csv(
            a_row(1, market="0.004", low="0.004", price="0.004"),
            a_row(2, market="0.01", low="0.01", price="0.01"),
        )
    )
    rows = read_csv((await seller.export()).content)
    assert [(row["TCGplayer Id"], row["TCG Marketplace Price"]) for row in rows] == [
        ("1", "0.0100")
    ]


async def test_cells_come_back_byte_for_byte(a_seller):
    seller = await a_seller()
    pieces = [
        '"',
        ",",
        "\n",
        "\r\n",
        "'",
        "+2 Mace",
        "=1+1",
        "@",
        "\t",
        " ",
        "é★",
        '","',
        '\x01"',
        "\x01",
        "\\",
        "\\.",
        "\\N",
    ]
    names = [f"{left}x{right}" for left, right in itertools.product(pieces, repeat=2)]
    rows = [
        a_row(n, name=name, rarity=right + left, number=left, photo=f"x{right}")
        for n, (name, (left, right)) in enumerate(
            zip(names, itertools.product(pieces, repeat=2), strict=True), start=1
        )
    ]
    report = await seller.import_csv(a_csv(*rows))
    assert (report["applied"], report["rejected_count"]) == (len(names), 0)
    export = await seller.export()
    came = read_csv(export.content)
    columns = ("TCGplayer Id", "Product Name", "Rarity", "Number", "Photo URL")
    assert [[row[name] for name in columns] for row in came] == [
        [row[name] for name in columns] for row in rows
    ]
    # Every record ends in CRLF, and no other byte was touched.
    assert (
        export.content
        == HEADER_ONLY
        + "".join(
            ",".join('"' + cell.replace('"', '""') + '"' for cell in row.values()) + "\r\n"
            for row in came
        ).encode()
    )


async def test_a_new_seller_gets_the_header_and_no_updates(a_seller):
    export = await (await a_seller()).export()
    assert (export.status_code, export.content, export.headers[REASON]) == (
        200,
        HEADER_ONLY,
        "no_updates",
    )


@pytest.mark.night
@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"plan": "free"}, "not_entitled"),
        ({"write_consent": False}, "consent_missing"),
        ({"past_due": True}, "past_due"),
        ({"automatic_pricing_paused": True}, "automatic_pricing_paused"),
    ],
)
@pytest.mark.parametrize("sync_mode", ["full", "read_only"])
async def test_a_switch_of_the_account_empties_the_export_and_says_why(
    a_seller, setting, reason, sync_mode
):
    seller = await a_priced_seller(a_seller, sync_mode=sync_mode)
    assert REASON not in (await seller.export()).headers
    await seller.set(**setting)
    export = await seller.export()
    assert (export.status_code, export.content, export.headers[REASON]) == (
        200,
        HEADER_ONLY,
        reason,
    )


@pytest.mark.night
async def test_all_reasons_stand_together_in_their_order(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 21))))
    await seller.import_csv(a_csv(a_row(1)))
    await seller.set(plan="free", write_consent=False, past_due=True, automatic_pricing_paused=True)
    export = await seller.export()
    reasons = "not_entitled,consent_missing,past_due,automatic_pricing_paused,awaiting_review"
    assert (export.content, export.headers[REASON]) == (HEADER_ONLY, reasons)


async def test_no_updates_stands_alone(a_seller):
    seller = await a_seller(past_due=True)
    assert (await seller.export()).headers[REASON] == "past_due"


@pytest.mark.night
async def test_every_answer_is_private_and_to_be_asked_for_again(a_seller):
    seller, tag = await a_reader(a_seller)
    nobody = await a_seller()
    for answer in (await seller.export(), await again(seller, tag), await nobody.export()):
        assert answer.headers["Cache-Control"] == "private, no-cache"
        assert "Authorization" in answer.headers["Vary"]


@pytest.mark.night
async def test_a_read_only_export_has_a_weak_etag(a_seller):
    _, tag = await a_reader(a_seller)
    assert tag.startswith('W/"')
    assert tag.endswith('"')


async def test_a_header_only_export_has_an_etag_too(a_seller):
    seller = await a_seller(sync_mode="read_only")
    export = await seller.export()
    assert export.headers[REASON] == "no_updates"
    answer = await again(seller, export.headers["ETag"])
    assert (answer.status_code, answer.content) == (304, b"")
    assert REASON not in answer.headers


@pytest.mark.night
async def test_the_same_tag_is_304_without_a_body(a_seller):
    seller, tag = await a_reader(a_seller)
    answer = await again(seller, tag)
    assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", tag)
    assert REASON not in answer.headers


@pytest.mark.night
async def test_if_none_match_is_a_list_compared_weakly(a_seller):
    seller, tag = await a_reader(a_seller)
    strong = tag.removeprefix("W/")
    hits = [[tag], [strong], ["*"], ['"x"', tag], [tag, 'W/"y"'], ['"x"', strong, '"y"']]
    misses = [['"x"'], ['"x"', 'W/"y"'], [strong.strip('"')], [""], ['W/"*"']]
    assert [(await again(seller, *tags)).status_code for tags in hits] == [304] * len(hits)
    assert [(await again(seller, *tags)).status_code for tags in misses] == [200] * len(misses)


@pytest.mark.night
async def test_an_identical_upload_keeps_the_304(a_seller):
    seller, tag = await a_reader(a_seller)
    await seller.import_csv(a_csv(a_row(1, market="1.20"), a_row(2, market="1.00")))
    assert (await again(seller, tag)).status_code == 304


@pytest.mark.night
async def test_a_change_that_no_target_shows_keeps_the_304(a_seller):
    seller, tag = await a_reader(a_seller)
    await seller.import_csv(
        a_csv(a_row(1, market="1.20", quantity=8, rarity="R"), a_row(2, market="1.00"))
    )
    assert (await again(seller, tag)).status_code == 304


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "rows",
    [
        [a_row(1, market="1.30"), a_row(2, market="1.00")],
        [a_row(1, market="1.20"), a_row(2, market="1.30")],
        [a_row(1, market="1.20", price="1.19"), a_row(2, market="1.00")],
        [a_row(1, market="1.20", quantity=0), a_row(2, market="1.00")],
        [a_row(2, market="1.00")],
        [a_row(1, market="1.20"), a_row(2, market="1.00"), a_row(3, market="1.30")],
    ],
    ids=["other target", "one more", "taken over", "sold out", "absent", "new card"],
)
async def test_a_changed_set_has_another_tag(a_seller, rows):
    seller, tag = await a_reader(a_seller)
    await seller.import_csv(a_csv(*rows))
    answer = await again(seller, tag)
    assert answer.status_code == 200
    assert answer.headers["ETag"] != tag


@pytest.mark.night
async def test_the_tag_comes_back_with_the_set(a_seller):
    seller, tag = await a_reader(a_seller)
    await seller.import_csv(a_csv(a_row(1, market="1.30"), a_row(2, market="1.00")))
    await seller.import_csv(a_csv(a_row(1, market="1.20"), a_row(2, market="1.00")))
    assert (await again(seller, tag)).status_code == 304


@pytest.mark.night
@pytest.mark.parametrize("setting", ["past_due", "automatic_pricing_paused"])
async def test_a_switch_changes_the_tag_and_back(a_seller, setting):
    seller, tag = await a_reader(a_seller)
    await seller.set(**{setting: True})
    held = await again(seller, tag)
    assert (held.status_code, held.content) == (200, HEADER_ONLY)
    assert (await again(seller, held.headers["ETag"])).status_code == 304
    await seller.set(**{setting: False})
    assert (await again(seller, held.headers["ETag"])).status_code == 200
    assert (await again(seller, tag)).status_code == 304


@pytest.mark.night
async def test_a_full_account_always_gets_the_file_and_no_tag(a_seller):
    seller, tag = await a_reader(a_seller)
    await seller.set(sync_mode="full")
    for answer in (await seller.export(), await again(seller, tag), await again(seller, "*")):
        assert answer.status_code == 200
        assert "ETag" not in answer.headers
        assert len(read_csv(answer.content)) == 1


@pytest.mark.night
async def test_an_account_held_read_only_by_its_plan_has_tags(a_seller):
    seller = await a_priced_seller(a_seller)
    await seller.set(plan="free")
    tag = (await seller.export()).headers["ETag"]
    assert (await again(seller, tag)).status_code == 304


@pytest.mark.night
async def test_a_sellers_export_holds_its_own_cards_only(a_seller):
    seller, other = await a_seller(), await a_seller()
    await seller.import_csv(a_csv(a_row(1)))
    await other.import_csv(a_csv(a_row(2)))
    assert [row["TCGplayer Id"] for row in read_csv((await seller.export()).content)] == ["1"]
    assert [row["TCGplayer Id"] for row in read_csv((await other.export()).content)] == ["2"]


async def a_rule(seller, **fields):
    answer = await seller.post(
        "/api/pricing/rules", json={"name": "A rule", "priority": 1} | fields
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


@pytest.mark.night
async def test_unpublished_drafts_are_excluded(a_seller):
    seller = await a_priced_seller(a_seller)
    before = (await seller.export()).content
    await a_rule(seller, adjust_bp=5000)
    assert (await seller.post("/api/pricing/reprice")).status_code == 202
    await seller.service.run_jobs()
    assert (await seller.export()).content == before


@pytest.mark.night
@pytest.mark.parametrize("sync_mode", ["full", "read_only"])
async def test_drafts_only_says_that_a_draft_would_change_a_card(a_seller, sync_mode):
    seller = await a_seller(sync_mode=sync_mode)
    await seller.import_csv(a_csv(a_row(1, market="1.00", price="0.99")))
    draft = await a_rule(seller, adjust_bp=5000)
    export = await seller.export()
    assert (export.status_code, export.content, export.headers[REASON]) == (
        200,
        HEADER_ONLY,
        "drafts_only",
    )
    await seller.set(past_due=True)
    assert (await seller.export()).headers[REASON] == "past_due,drafts_only"
    await seller.set(past_due=False)
    assert (await seller.post(f"/api/pricing/rules/{draft}/disable")).status_code == 200
    assert (await seller.export()).headers[REASON] == "no_updates"


async def test_a_draft_that_would_change_nothing_explains_nothing(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="1.00", price="0.99")))
    await a_rule(seller, adjust_bp=5000, query="market>=100")
    await a_rule(seller, adjust_bp=-100, priority=2)
    assert (await seller.export()).headers[REASON] == "no_updates"


@pytest.mark.night
async def test_beside_updates_a_draft_explains_nothing(a_seller):
    seller = await a_priced_seller(a_seller)
    await a_rule(seller, adjust_bp=5000)
    assert REASON not in (await seller.export()).headers
    await seller.set(past_due=True)
    assert (await seller.export()).headers[REASON] == "past_due"


@pytest.mark.night
async def test_while_an_agent_applies_prices_a_read_only_export_is_empty(a_seller):
    seller = await a_priced_seller(a_seller)
    now = clock.now()
    async with seller.service.database.tenant(seller.id) as session:
        task = await enqueue_task(session, seller.id, "apply_price_updates", {}, now)
        await session.execute(
            text(
                "UPDATE agent_task SET status = 'claimed', claimed_at = :now,"
                " claim_expires_at = :then WHERE id = :id"
            ),
            {"now": now, "then": now + timedelta(minutes=10), "id": task},
        )
        await note_due(session, seller.id)
    assert len(read_csv((await seller.export()).content)) == 1
    await seller.set(sync_mode="read_only")
    held = await seller.export()
    assert (held.status_code, held.content, held.headers[REASON]) == (
        200,
        HEADER_ONLY,
        "apply_in_progress",
    )
    assert (await again(seller, held.headers["ETag"])).status_code == 304
    clock.shift(timedelta(minutes=11))
    answer = await again(seller, held.headers["ETag"])
    assert (answer.status_code, len(read_csv(answer.content))) == (200, 1)


@pytest.mark.night
async def test_while_a_run_waits_for_the_sellers_word_the_export_is_empty(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 61))))
    assert len(read_csv((await seller.export()).content)) == 60
    await a_rule(seller, adjust_bp=9000, state="published")
    run = (await seller.post("/api/pricing/reprice")).json()["run_id"]
    await seller.service.run_jobs()
    held = await seller.export()
    assert (held.content, held.headers[REASON]) == (HEADER_ONLY, "awaiting_review")
    assert (await seller.get("/api/v1/status")).json()["phase"] == "awaiting_review"
    await seller.set(sync_mode="read_only")
    assert len(read_csv((await seller.export()).content)) == 60
    await seller.set(sync_mode="full")
    assert (await seller.post(f"/api/pricing/runs/{run}/discard")).status_code == 200
    assert len(read_csv((await seller.export()).content)) == 60
