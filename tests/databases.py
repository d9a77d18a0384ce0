"""A PostgreSQL server for tests: on loopback, in a temporary folder, stopped by its id."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid

import psycopg

OTHER = "postgres"  # the user it runs as where we are root, which it refuses


class Server:
    """`url()` makes a database of its own for each test."""

    def __init__(self, *, fsync=False):
        self.fsync = "on" if fsync else "off"
        self.folder = tempfile.mkdtemp(prefix="driftbandit-postgres-")
        self.as_other = []
        if os.geteuid() == 0:
            shutil.chown(self.folder, OTHER)
            setpriv = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"]
            self.as_other = setpriv
        data = f"{self.folder}/data"
        init = ["initdb", "-D", data, "-U", "test", "--auth=trust", "--no-sync", "-E", "UTF8"]
        done = subprocess.run(
            [*self.as_other, *init], cwd=self.folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.start()

    def start(self):
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": self.folder}
        options |= {"fsync": self.fsync, "max_connections": "50"}
        command = ["postgres", "-D", f"{self.folder}/data", "-p", str(self.port)]
        command += [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self.log = open(f"{self.folder}/log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen(
            [*self.as_other, *command], cwd=self.folder, stdout=self.log, stderr=self.log
        )
        end = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self._address("postgres")).close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, "PostgreSQL does not start"
                assert time.monotonic() < end
                time.sleep(0.05)

    def _address(self, name):
        return f"postgresql://test@127.0.0.1:{self.port}/{name}"

    def url(self):
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as base:
            base.execute(f"CREATE DATABASE {name}")
        return self._address(name)

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)  # a fast stop; it was started by us
        self.process.wait(timeout=30)
        self.log.close()

    def remove(self):
        self.stop(signal.SIGQUIT)  # nothing need be kept
        shutil.rmtree(self.folder, ignore_errors=True)
