"""Only addresses on the public internet are accepted, also when they embed others."""

import pytest
from newsembed.beam_pipelines.crawl.addresses import is_public


@pytest.mark.parametrize(
    "peer",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "172.16.9.9",
        "100.64.0.1",
        "100.100.100.200",  # a cloud's metadata in the shared range
        "169.254.169.254",
        "168.63.129.16",
        "192.0.0.192",
        "192.88.99.1",
        "198.18.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "232.1.2.3",  # multicast that Python counts as global
        "64:ff9b::e801:203",  # NAT64 of 232.1.2.3
        "ff0e::1",  # global multicast
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",  # IPv4-compatible
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a00:1",  # NAT64 of 10.0.0.1
        "64:ff9b::a9fe:a9fe",  # NAT64 of 169.254.169.254
        "64:ff9b:1::1",
        "2002:7f00:1::",  # 6to4 of 127.0.0.1
        "2002:808:808::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",  # Teredo
        "2001:db8::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_internal_addresses_are_not_public(peer):
    assert not is_public(peer)


@pytest.mark.parametrize(
    "peer", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "64:ff9b::101:101"]
)
def test_internet_addresses_are_public(peer):
    assert is_public(peer)
