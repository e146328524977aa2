"""Bodies that are made from openapi.json alone are accepted, or refused for their values: never for
their form.
"""

import random
import re
import string

import schedule
from browsers import signed_in
from builders import a_csv, a_row
from requests_of_routes import DOCUMENT, answer_of

JSON = "application/json"
ROUTES = [
    (f"{method.upper()} {path}", operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if JSON in operation.get("requestBody", {}).get("content", {})
]
# What the reader of bodies says of a field that is not there, should not be, or has another type.
OF_FORM = re.compile(
    r": is missing|is not a field|Expected|must be (an? (text|list|object|number)|true or false)\b"
    r"|, not (a list|true or false|a number|null|an object|a text)\b"
)
# What a change of a plan needs depends on its `op`.
BY_ITS_OP = re.compile(r"actions\[\d+\]\.changes\[\d+\]\.(rule_id|set): is missing")


class Maker:
    """Random values of the document's schemas."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def value(self, schema: dict):
        while "$ref" in schema:
            schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if "allOf" in schema:
            [whole] = schema["allOf"]
            whole = DOCUMENT["components"]["schemas"][whole["$ref"].rpartition("/")[2]]
            return self._object(
                {**whole, "required": whole.get("required", []) + schema.get("required", [])}
            )
        for several in ("oneOf", "anyOf"):
            if several in schema:
                rest = {name: one for name, one in schema.items() if name != several}
                return self.value(rest | self.dice.choice(schema[several]))
        if "enum" in schema or "const" in schema:
            return self.dice.choice(schema.get("enum", [schema.get("const")]))
        kind = schema.get("type", "object")
        kind = self.dice.choice(kind) if isinstance(kind, list) else kind
        return getattr(self, f"_{kind}")(schema)

    def _null(self, _):
        return None

    def _boolean(self, _):
        return self.dice.random() < 0.5

    def _integer(self, schema):
        least = int(schema.get("minimum", -10))
        return self.dice.randint(least, min(int(schema.get("maximum", 10**6)), least + 10**4))

    def _number(self, schema):
        return round(self.dice.uniform(schema.get("minimum", 0), schema.get("maximum", 99)), 2)

    def _string(self, schema):
        if schema.get("format") == "date-time":
            return f"2026-11-{self.dice.randint(10, 30)}T08:00:00.000000Z"
        if schema.get("format") == "date":
            return f"2026-11-{self.dice.randint(10, 30)}"
        if "pattern" in schema:
            # The only one in bodies is that of amounts.
            return f"{self.dice.uniform(0, 99):.2f}"
        least = schema.get("minLength", 0)
        length = self.dice.randint(least, max(least, min(schema.get("maxLength", 12), 12)))
        return "".join(self.dice.choices(string.ascii_letters + " é-7", k=length))

    def _array(self, schema):
        least = schema.get("minItems", 0)
        many = self.dice.randint(least, max(least, min(schema.get("maxItems", 3), 3)))
        return [self.value(schema["items"]) for _ in range(many)]

    def _object(self, schema):
        if "propertyNames" in schema:
            names = schema["propertyNames"]["enum"]
            chosen = self.dice.sample(names, self.dice.randint(0, len(names)))
            return {name: self.value(schema["additionalProperties"]) for name in chosen}
        return {
            name: self.value(one)
            for name, one in schema.get("properties", {}).items()
            if name in schema.get("required", ()) or self.dice.random() < 0.5
        }


async def refused_for_its_form(a_seller, rounds: int, seed: int) -> dict[str, str]:
    seller = await a_seller()
    await seller.import_csv(a_csv(a_row(1, market="2.00")))
    owner = await signed_in(seller)
    maker = Maker(random.Random(seed))
    wrong = {}
    for route, operation in ROUTES:
        security = [name for one in operation.get("security", []) for name in one]
        by_session = not security or "session" in security
        for _ in range(rounds):
            body = maker.value(operation["requestBody"]["content"][JSON]["schema"])

            async def send(method, path, body=body, by_session=by_session, **options):
                options["json"] = body
                return await (owner.send if by_session else seller.http.request)(
                    method, path, **options
                )

            answer = await answer_of(send, route)
            said = answer.json().get("error", "") if answer.status_code in (400, 415, 422) else ""
            if answer.status_code >= 500 or (OF_FORM.search(said) and not BY_ITS_OP.search(said)):
                wrong[route] = f"{answer.status_code} {said}: {body}"
    return wrong


@schedule.deeper
async def test_a_body_of_the_schema_is_never_refused_for_its_form(a_seller):
    """Alone finds a field whose type or need openapi.json tells otherwise than its reader."""
    seed = random.randrange(10**6) if schedule.DEEP else 1
    wrong = await refused_for_its_form(
        a_seller, schedule.examples(3, schedule.count("BODIES", 100, 6)), seed
    )
    assert not wrong, f"seed {seed}: " + "\n".join(
        f"{route}: {said}" for route, said in wrong.items()
    )
