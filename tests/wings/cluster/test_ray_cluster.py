"""Tests of transduce/wings/cluster/ray_cluster.py."""

from transduce.wings.cluster.ray_cluster import read_address


def test_ray_addresses_are_checked(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert read_address("ray") == ""
    assert read_address("ray://host:10001") == "ray://host:10001"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert read_address("ray") == "10.0.0.1:6379"
