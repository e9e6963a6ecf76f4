"""Work in a child process: as another user, or among mounts of its own."""

import os
import shlex
import subprocess
import sys

import pytest


def forked(work, user=None, group=None, umask=None):
    """Do ``work`` in a child, perhaps as another user; return what it prints as, or its error."""
    if user is not None and os.getuid():
        pytest.skip("only root can be another user")
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        text = ""
        try:
            if umask is not None:
                os.umask(umask)
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                if group is not None:
                    os.setgroups([group])
                os.setuid(user)
            text = str(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        finally:
            os.write(start, text.encode()[:60000])
            os._exit(0)
    os.close(start)
    with open(end) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


def mounted(commands, code, *arguments):
    """Run ``code`` after ``commands`` of mount, which nobody else sees; return what it prints."""
    program = shlex.join([sys.executable, "-c", code, *map(str, arguments)])
    try:
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", f"{' && '.join(commands)} || exit 99; exec {program}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if done.returncode == 99 or "unshare failed" in done.stderr:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout
