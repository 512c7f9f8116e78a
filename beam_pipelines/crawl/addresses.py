"""Decides which IP addresses the crawler may connect to: only public ones, also behind redirects and tunnels."""

import ipaddress

_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Python reports these as global, or did in some releases; none of them is a news site. Inside Azure's virtual machines
# 168.63.129.16 is the address of the host.
_REFUSED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "168.63.129.16/32",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
    )
)


def is_public(peer: str) -> bool:
    """Returns whether an address is on the public internet.

    Loopback, private, link-local (the metadata servers of clouds), shared, multicast and reserved addresses are not
    public, also when an IPv6 address embeds them (IPv4-mapped, NAT64). Teredo and 6to4 addresses, which reach an IPv4
    address through a relay, are never public.

    >>> is_public("93.184.216.34"), is_public("64:ff9b::a00:1"), is_public("fe80::1%eth0")
    (True, False, False)

    Args:
      peer: IP address as ``getpeername`` returns it; an interface after "%" is ignored.

    Raises:
      ValueError: if ``peer`` is not an IP address.
    """
    address = ipaddress.ip_address(peer.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif address in _NAT64:
            address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        elif address not in _GLOBAL_UNICAST:
            return False
    return address.is_global and not address.is_multicast and not any(address in network for network in _REFUSED)
