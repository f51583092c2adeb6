//! How often each who comes may do what needs no token: a share of what all of them may, so that one who floods keeps nobody out.

use crate::auth::Bucket;
use crate::clock::Clock;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most of whom is known what each has done lately.
const MOST: usize = 1024;

/// What one may: this part of what all together may.
const SHARE: f64 = 0.5;

/// Who has come, as far as that can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Peer {
    /// Through a socket's file.
    Local,
    /// From this address. Of version 6 it is the network: whoever has one address there has all of them.
    At(IpAddr),
}

impl Peer {
    /// Who comes from this address.
    pub fn at(address: IpAddr) -> Self {
        Self::At(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address => address,
        })
    }
}

/// What all together may do, and each of them.
pub(super) struct Peers {
    clock: Arc<dyn Clock>,
    rate: f64,
    size: f64,
    all: Bucket,
    each: Mutex<HashMap<Peer, Bucket>>,
}

impl Peers {
    /// All together may do something so often in a second, and so often at once.
    pub fn new(clock: &Arc<dyn Clock>, rate: f64, size: f64) -> Self {
        let all = Bucket::new(Arc::clone(clock), rate, size);
        Self { clock: Arc::clone(clock), rate: rate * SHARE, size: size * SHARE, all, each: Mutex::default() }
    }

    /// This one does it once more.
    ///
    /// # Errors
    /// How long it is to wait, where it or all have done it too often.
    pub fn take(&self, peer: Peer) -> Result<(), Duration> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        if each.len() >= MOST && !each.contains_key(&peer) {
            // Who has done nothing lately is as one who never came; where all have, those are forgotten: together they can do
            // no more than all.
            each.retain(|_, bucket| !bucket.is_full());
            if each.len() >= MOST {
                each.clear();
            }
        }
        let new = || Bucket::new(Arc::clone(&self.clock), self.rate, self.size);
        each.entry(peer).or_insert_with(new).take()?;
        self.all.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    fn peers(rate: f64, size: f64) -> (Arc<ManualClock>, Peers) {
        let clock = Arc::new(ManualClock::at(0));
        let peers = Peers::new(&(Arc::clone(&clock) as Arc<dyn Clock>), rate, size);
        (clock, peers)
    }

    fn from(address: &str) -> Peer {
        Peer::at(address.parse().unwrap())
    }

    #[test]
    fn one_who_floods_keeps_nobody_out() {
        let (clock, peers) = peers(1.0, 40.0);
        let floods = |times: usize| (0..times).filter(|_| peers.take(from("192.0.2.1")).is_ok()).count();
        assert_eq!(floods(100), 20);
        // For as long as it likes.
        for _ in 0..100 {
            floods(10);
            assert_eq!(peers.take(from("192.0.2.2")), Ok(()));
            clock.advance(Duration::from_secs(2));
        }
        assert!(peers.take(Peer::Local).is_ok(), "nor those who come through a socket");
    }

    #[test]
    fn all_together_have_no_more_however_many_they_are() {
        let (_, peers) = peers(1.0, 40.0);
        let many = (0..3 * MOST).map(|n| from(&format!("2001:db8:{n:x}::1")));
        assert_eq!(many.filter(|peer| peers.take(*peer).is_ok()).count(), 40);
        assert!(peers.each.lock().unwrap().len() <= MOST);
    }

    #[test]
    fn whoever_has_a_network_is_one() {
        assert_eq!(from("2001:db8::1"), from("2001:db8::ffff:0:1"));
        assert_ne!(from("2001:db8::1"), from("2001:db8:0:1::1"));
        assert_eq!(from("::ffff:192.0.2.1"), from("192.0.2.1"));
        assert_ne!(from("192.0.2.1"), from("192.0.2.2"));
    }
}
