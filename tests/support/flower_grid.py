"""Flower's grid in this process. Skips the module that imports it where Flower is not installed."""

import pytest

pytest.importorskip("flwr")
pytest.importorskip("flwr.serverapp")
from flwr.app import Error, Message


class CrashError(BaseException):
    pass


class Grid:
    """Calls one ClientApp for every node; those in ``failing`` answer with an error."""

    def __init__(self, app, nodes, failing=(), dies_at=None):
        self.app, self.nodes, self.failing = app, nodes, failing
        self.dies_at, self.trained = dies_at, 0

    def get_node_ids(self):
        return list(self.nodes)

    def send_and_receive(self, messages, *, timeout=None):
        messages, replies = list(messages), []
        training = any(m.metadata.message_type == "train" for m in messages)
        self.trained += training
        if training and self.trained == self.dies_at:
            raise CrashError
        for message in messages:
            node = message.metadata.dst_node_id
            message.metadata._message_id = f"{node}"
            context = type("Context", (), {"node_config": {"partition-id": node}})()
            if training and node in self.failing:
                reply = Message(Error(code=0, reason="away"), reply_to=message)
            else:
                reply = self.app(message, context)
            reply.metadata._src_node_id = node
            replies.append(reply)
        return replies


def as_in_a_run(monkeypatch):
    """Say which run this is, as Flower's runtime does before any message is made."""
    identity = pytest.importorskip("flwr.supercore.task_identity").TaskIdentity
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(identity, name, 1)
