"""Which addresses a crawler may talk to: public ones, whatever a name, a redirect or a tunnel makes of them."""

import ipaddress

_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Python calls these global, or did in some releases; none of them is a news site. 168.63.129.16 answers for Azure's host inside its machines.
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
    """Whether an address lies in the open internet.

    No loopback, private, link-local (which holds the clouds' metadata servers), shared, multicast or reserved address; none of these inside
    an IPv6 address either (IPv4-mapped, NAT64). Teredo and 6to4, which lead to an IPv4 address by way of a relay, are refused whole.

    >>> is_public("93.184.216.34"), is_public("64:ff9b::a00:1"), is_public("fe80::1%eth0")
    (True, False, False)

    Args:
      peer: as ``getpeername`` gives it; an interface after "%" is ignored.
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
