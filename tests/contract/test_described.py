"""The check of every answer against openapi.json finds each way in which one can be untrue."""

import httpx
import pytest

import described


def an_answer(method: str, path: str, status: int, **content) -> httpx.Response:
    request = httpx.Request(method, f"http://test{path}")
    return httpx.Response(status, request=request, **content)


FOUND = {
    "a status": (an_answer("GET", "/api/lists", 418, json={}), "does not say"),
    "a media type": (an_answer("GET", "/api/lists", 200, text="lists"), "as text/plain"),
    "a type": (
        an_answer("GET", "/api/lists", 200, json={"lists": "no", "max_cards_per_list": 1}),
        "otherwise than",
    ),
    "a missing field": (an_answer("GET", "/api/lists", 200, json={"lists": []}), "required"),
    "a further field": (
        an_answer("GET", "/api/lists", 200, json={"lists": [], "max_cards_per_list": 1, "a": 1}),
        "Additional properties",
    ),
    "another code": (
        an_answer("GET", "/api/lists", 401, json={"error": "no", "code": "moon_phase"}),
        "moon_phase",
    ),
}


@pytest.mark.parametrize("what", FOUND)
async def test_an_answer_that_the_document_does_not_describe_is_found(what):
    answer, said = FOUND[what]
    with pytest.raises(AssertionError, match=said):
        await described.as_described(answer)


async def test_what_fits_and_what_no_document_describes_passes():
    fits = {"lists": [], "max_cards_per_list": 1000}
    await described.as_described(an_answer("GET", "/api/lists", 200, json=fits))
    await described.as_described(an_answer("HEAD", "/api/lists", 200))
    await described.as_described(an_answer("GET", "/api/lists/abc", 404, json={}))
    await described.as_described(an_answer("GET", "/cards", 200, html="<p>"))
    key = "/objects/inventory/u1/a.csv.gz"
    with pytest.raises(AssertionError, match=r"PUT /objects/\{key\} answers 418"):
        await described.as_described(an_answer("PUT", key, 418))
