//! Room for the bodies of requests: each grant has its share of what there is for all, so that none takes it from the others.

use super::guest::Refusal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// What the bodies of all requests may have together, bytes.
pub(super) const ALL: usize = 32 << 20;

/// What those of one grant may have of it.
pub(super) const SHARE: usize = ALL / 4;

/// How long room is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The room that a body has while it comes and until it was parsed. It is given back when this is dropped.
#[derive(Debug)]
pub struct Room {
    own: OwnedSemaphorePermit,
    of_all: OwnedSemaphorePermit,
}

impl Room {
    /// No room yet: among these of the grant, and these of all.
    pub(super) fn none(own: &Arc<Semaphore>, of_all: &Arc<Semaphore>) -> Result<Self, Refusal> {
        let none = |room: &Arc<Semaphore>| Arc::clone(room).try_acquire_many_owned(0).map_err(|_| Refusal::Full);
        Ok(Self { own: none(own)?, of_all: none(of_all)? })
    }

    /// Takes room for so many bytes more, once it is there.
    ///
    /// # Errors
    /// When others have it all that time.
    pub async fn grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        let bytes = u32::try_from(bytes).map_err(|_| Refusal::Full)?;
        let (own, of_all) = (Arc::clone(self.own.semaphore()), Arc::clone(self.of_all.semaphore()));
        let more = async { Ok((own.acquire_many_owned(bytes).await?, of_all.acquire_many_owned(bytes).await?)) };
        let more: Result<_, tokio::sync::AcquireError> = timeout(PATIENCE, more).await.map_err(|_| Refusal::Full)?;
        let (own, of_all) = more.map_err(|_| Refusal::Full)?;
        self.own.merge(own);
        self.of_all.merge(of_all);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(bytes: usize) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(bytes))
    }

    #[tokio::test]
    async fn who_has_its_share_waits_and_others_do_not() {
        let (all, own, other) = (room(20), room(5), room(5));
        let mut first = Room::none(&own, &all).unwrap();
        assert_eq!(first.grow(5).await, Ok(()));
        let mut second = Room::none(&own, &all).unwrap();
        assert_eq!(second.grow(0).await, Ok(()), "nothing needs no room");
        let waits = tokio::time::timeout(std::time::Duration::from_millis(20), second.grow(1)).await;
        assert!(waits.is_err(), "{waits:?}");
        assert_eq!(Room::none(&other, &all).unwrap().grow(5).await, Ok(()));
        drop(first);
        assert_eq!(second.grow(5).await, Ok(()), "it was given back");
        assert_eq!(all.available_permits(), 15);
    }
}
