//! How often somebody may ask: a bucket for each that fills up again over time. And how much somebody may hold at once.
//!
//! By hand and not by `governor`: the memory for strangers must be bounded, which there is a housekeeping job, and here one comparison.

use paygo_ledger::entry::Digest;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Buckets that are remembered; past that all are forgotten, and everybody begins with a full one.
const MAX_BUCKETS: usize = 10_000;
/// Failed attempts a second from one address.
const FAILURES: u32 = 10;

/// Whose bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Whose {
    /// Of a token that is known.
    Token(Digest),
    /// Of an address that came without one.
    Peer(IpAddr),
}

/// Buckets that hold a second's worth.
pub(crate) struct Limiter {
    /// Requests a second of one token.
    rate: u32,
    buckets: Mutex<HashMap<Whose, (f64, Instant)>>,
}

impl Limiter {
    pub(crate) fn new(rate: u32) -> Self {
        Self { rate, buckets: Mutex::default() }
    }

    /// Whether one more is within the rate.
    pub(crate) fn allows(&self, whose: Whose, now: Instant) -> bool {
        let rate = f64::from(match whose {
            Whose::Token(_) => self.rate,
            Whose::Peer(_) => FAILURES,
        });
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS {
            buckets.clear();
        }
        let (left, since) = buckets.entry(whose).or_insert((rate, now));
        *left = (*left + rate * now.saturating_duration_since(*since).as_secs_f64()).min(rate);
        *since = now;
        let allowed = *left >= 1.0;
        if allowed {
            *left -= 1.0;
        }
        allowed
    }
}

/// Tickets of which each may hold so many at once.
pub(crate) struct Tickets<K> {
    most: usize,
    held: Mutex<HashMap<K, Ticket>>,
}

/// Given back when it is dropped.
pub(crate) type Ticket = Arc<()>;

impl<K: Eq + Hash> Tickets<K> {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, held: Mutex::default() }
    }

    /// One more, unless there are as many as may be.
    pub(crate) fn take(&self, whose: K) -> Option<Ticket> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, ticket| Arc::strong_count(ticket) > 1);
        let ticket = held.entry(whose).or_default();
        (Arc::strong_count(ticket) <= self.most).then(|| Arc::clone(ticket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn tickets_are_given_back() {
        let tickets = Tickets::new(2);
        let held = [tickets.take("ann"), tickets.take("ann")];
        assert!(held.iter().all(Option::is_some) && tickets.take("ann").is_none());
        assert!(tickets.take("bob").is_some(), "another's");
        drop(held);
        assert!(tickets.take("ann").is_some());
    }

    #[test]
    fn a_bucket_fills_up_again() {
        let limiter = Limiter::new(2);
        let (start, ann, bob) = (Instant::now(), Whose::Token(Digest::of("ann")), Whose::Token(Digest::of("bob")));
        let asks = |whose, after| limiter.allows(whose, start + Duration::from_millis(after));
        assert_eq!([asks(ann, 0), asks(ann, 0), asks(ann, 0)], [true, true, false]);
        assert!(asks(bob, 0), "another's bucket is full");
        assert_eq!([asks(ann, 400), asks(ann, 500), asks(ann, 501)], [false, true, false]);
        assert_eq!([asks(ann, 9000), asks(ann, 9000), asks(ann, 9000)], [true, true, false], "no more than a second's");
    }
}
