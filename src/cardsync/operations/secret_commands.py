"""The command `cardsync admin rotate-secret`."""

from __future__ import annotations

import click

from cardsync.processes.command_line import say, settings_with
from cardsync.processes.supervisor import database


@click.command("rotate-secret")
def rotate_secret() -> None:
    """Put a new secret in the place of the installation's, while the service runs or not. What was
    sealed with the old one is sealed anew; links in mails that were sent before end.
    """
    from cardsync.operations.rotate_secret import rotate

    with database(settings_with(), say) as ready:
        done = rotate(ready)
    click.echo(f"{done.webhooks} secrets of webhooks are sealed with the present secret")
    if not done.lost:
        click.echo("the secret before it opens nothing any more")
    if done.lost:
        raise click.ClickException(
            f"{done.lost} secrets of webhooks were sealed with a secret that is not known here:"
            " their owners create new ones; the old secret is kept until this command finds none"
        )
