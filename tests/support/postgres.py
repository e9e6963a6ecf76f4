"""A PostgreSQL server of one's own: in a temporary directory, as a user who is not root."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

HOMES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))


def programs():
    """Return the directory with initdb and postgres; None where there is none."""
    found = shutil.which("initdb")
    homes = [Path(found).resolve().parent] if found else HOMES[-1:]
    return next((home for home in homes if (home / "postgres").exists()), None)


def why_not():
    """Return why no server can be started here; empty where one can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    if programs() is None:
        return "no PostgreSQL here (Debian: apt-get install postgresql)"
    return "" if os.getuid() or _user() else "PostgreSQL does not run as root, nobody else is here"


def _user():
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    return None


class Server:
    """Listens on a socket in its own directory; everybody may log in as ``owner``."""

    def __init__(self):
        self.home = Path(tempfile.mkdtemp(prefix="pg"))
        self._as = {}
        if not os.getuid():
            user = _user()
            os.chown(self.home, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        command = ["initdb", "-D", "data", "-A", "trust", "-U", "owner", "--no-sync", "-E", "UTF8"]
        self._run([*command, "--locale=C"])
        self._process = None
        self._schemas = 0
        self.start()

    def start(self):
        settings = ("listen_addresses=", f"unix_socket_directories={self.home}")
        options = [part for setting in settings for part in ("-c", setting)]
        with open(self.home / "log", "ab") as log:
            self._process = subprocess.Popen(
                [programs() / "postgres", "-D", "data", *options, "-c", "max_connections=100"],
                cwd=self.home,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._as,
            )
        deadline = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None:  # a killed server's children are still going
                time.sleep(0.1)
                return self.start()
            assert time.monotonic() < deadline, (self.home / "log").read_text()[-2000:]
            time.sleep(0.03)
        return None

    def kill(self):
        """Kill the server and its children at once, as a loss of power would."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self):
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)  # at once, and its shared memory is freed
            self._process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def fresh(self):
        """Return the URL of a schema with nothing in it."""
        import psycopg

        self._schemas += 1
        name = f"s{self._schemas}"
        with psycopg.connect(self._url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self._url()}&options=-csearch_path%3D{name}"

    def _url(self):
        return f"postgresql://owner@/postgres?host={self.home}"

    def _answers(self):
        import psycopg

        try:
            psycopg.connect(self._url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, command):
        path = programs() / command[0]
        subprocess.run(
            [path, *command[1:]], cwd=self.home, check=True, capture_output=True, **self._as
        )
