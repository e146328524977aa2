"""The pages' style sheet: one file for browsers, made of all components."""

from pathlib import Path

from cardsync.dashboard import assets

STATIC = Path(assets.__file__).parent / "static"


def test_the_style_sheet_holds_each_component_once():
    text = assets.text_of("app.css")
    components = sorted((STATIC / "css").glob("*.css"))
    assert text
    assert len(components) > 30
    for component in components:
        assert text.count(component.read_text()) == 1, component.name
    assert "@import" not in text


def test_the_address_of_the_style_sheet_names_its_components(tmp_path, monkeypatch):
    (tmp_path / "static" / "css").mkdir(parents=True)
    (tmp_path / "static" / "app.css").write_text('@import "css/a.css";\n')
    monkeypatch.setattr(assets, "files", lambda _: tmp_path)
    addresses = set()
    for color in ("red", "blue"):
        (tmp_path / "static" / "css" / "a.css").write_text(f"p {{ color: {color}; }}\n")
        addresses.add(assets._assets.__wrapped__()[1]["app.css"])
    assert len(addresses) == 2
