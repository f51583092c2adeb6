//! Which addresses a host that somebody else has named may have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that are not on the public internet: by the IANA's registry of special-purpose addresses (RFC 6890), with
/// multicast, what is reserved, and the relays of 6to4.
const NOT_PUBLIC_V4: [([u8; 4], u32); 14] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 3),
];

/// IPv6 blocks within global unicast (2000::/3, all that is public of it) that are not: protocol assignments with Teredo,
/// documentation, and 6to4, which leads to any IPv4 address.
const NOT_PUBLIC_V6: [([u16; 8], u32); 4] = [
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// Whether an address is one of the public internet. IPv4 addresses in the clothes of IPv6 (mapped, NAT64) never are: who
/// means one writes it plainly.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|(block, length)| {
            let shift = 32 - length;
            address.to_bits() >> shift == Ipv4Addr::from(*block).to_bits() >> shift
        }),
        IpAddr::V6(address) => {
            let begins = |block: [u16; 8], length: u32| {
                let shift = 128 - length;
                address.to_bits() >> shift == Ipv6Addr::from(block).to_bits() >> shift
            };
            begins([0x2000, 0, 0, 0, 0, 0, 0, 0], 3) && !NOT_PUBLIC_V6.iter().any(|(block, n)| begins(*block, *n))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_the_internet_routes_is_public() {
        for (address, public) in [
            ("93.184.215.14", true),
            ("1.1.1.1", true),
            ("172.32.0.1", true),
            ("100.128.0.1", true),
            ("223.255.255.254", true),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("100.64.0.1", false),
            ("127.0.0.1", false),
            ("127.255.255.254", false),
            ("169.254.169.254", false),
            ("172.31.255.255", false),
            ("192.0.0.170", false),
            ("192.168.1.1", false),
            ("198.19.0.1", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", true),
            ("2a00:1450:4001::1", true),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:8.8.8.8", false),
            ("::ffff:127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b:1::1", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("2002:7f00:1::", false),
            ("3fff::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_the_system_knows_as_its_own_is_public(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            let own = address.is_private() || address.is_loopback() || address.is_link_local() || address.is_multicast()
                || address.is_broadcast() || address.is_documentation() || address.is_unspecified();
            prop_assert!(!(own && is_public(address.into())));
            prop_assert!(!is_public(address.to_ipv6_mapped().into()) && !is_public(address.to_ipv6_compatible().into()));
        }
    }
}
