"""The owner of the only shop sees the backups on Settings → Data and asks for one; in an
installation of several shops they are its operators'.
"""

from browsers import joined, operates, signed_in
from cardsync.platform import clock
from cardsync.platform.backups import backup_reports, requested_backup
from cardsync.shop.operators import catalog_installs
from notices_builder import of_service, reaching

API = "/api/operator/backups"
DATA = "/settings/data"


async def test_the_only_owner_backs_up_and_others_do_not(
    a_seller, service, alive, owner_url, tmp_path, monkeypatch
):
    async with reaching(service, alive, data_dir=tmp_path, daily_backups=True) as here:
        seller = of_service(await a_seller(time_zone="America/New_York"), here)
        monkeypatch.setattr(catalog_installs, "_ONE_SHOP", "SELECT false")
        owner, staff = await signed_in(seller), await joined(seller, f"s-{seller.email}")
        assert "Back up now" not in (await owner.get(DATA)).text
        assert (await owner.get(API)).json()["code"] == "operator_required"
        assert (await owner.form(f"{DATA}/backup")).status_code == 403
        monkeypatch.setattr(catalog_installs, "_ONE_SHOP", "SELECT true")
        assert (await staff.form(f"{DATA}/backup")).status_code == 403
        page = (await owner.get(DATA)).text
        assert "cardsync restore" in page
        # Nothing here would make one.
        assert "Back up now" not in page
        assert (await owner.post(API)).status_code == 404
        requested_backup.write(tmp_path, "offered")
        now = clock.now()
        backup_reports.record(owner_url, "backup", "20270101T000000Z", now, now, None, 12_300_000)
        page = (await owner.get(DATA)).text
        assert "12.3 MB" in page
        assert " EDT" in page or " EST" in page
        assert "Back up now" in page
        assert (await owner.form(f"{DATA}/backup")).headers["Location"] == DATA
        assert requested_backup.read(tmp_path) == "asked"
        page = (await owner.get(DATA)).text
        assert "Backing up now" in page
        assert "Back up now" not in page
        again = await owner.post(API)
        assert (again.status_code, again.json()["waits"]) == (202, True)
        requested_backup.write(tmp_path, "offered")
        assert (await owner.get(API)).json()["waits"] is False
        feed = (await owner.get("/activity")).text
        assert feed.count("Backup requested") >= 1


async def test_an_operator_asks_too(a_seller, service, alive, tmp_path):
    async with reaching(service, alive, data_dir=tmp_path) as here:
        seller = of_service(await a_seller(), here)
        await operates(seller)
        owner = await signed_in(seller)
        requested_backup.write(tmp_path, "offered")
        assert (await owner.post(API)).json()["waits"] is True
