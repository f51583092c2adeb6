//! What was asked and is not answered yet. The owner waits for all of it itself: a task for each call would be one more that a
//! call and its answer go through, and the threads of the runtime begin to hand over what goes through that many.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Questions with their names. All are looked at whenever something happens: there are no more of them than the session's queue
/// holds.
#[derive(Debug)]
pub struct Asking<N, A>(Vec<(N, Question<A>)>);

/// A question, to be waited for until it is answered.
struct Question<A>(Pin<Box<dyn Future<Output = A> + Send>>);

impl<A> std::fmt::Debug for Question<A> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Question")
    }
}

impl<N, A> Default for Asking<N, A> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<N: PartialEq, A> Asking<N, A> {
    /// Asks; nothing happens before the next answer is waited for.
    pub fn add(&mut self, name: N, question: impl Future<Output = A> + Send + 'static) {
        self.0.push((name, Question(Box::pin(question))));
    }

    /// Waits no more for this one.
    pub fn give_up(&mut self, name: N) {
        self.0.retain(|(other, _)| *other != name);
    }

    /// The next answer, whichever question it is to; none as long as nothing is asked.
    pub async fn next(&mut self) -> (N, A) {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// An answer that has come already.
    pub fn ready(&mut self) -> Option<(N, A)> {
        match self.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answered) => Some(answered),
            Poll::Pending => None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(N, A)> {
        for (nth, (_, question)) in self.0.iter_mut().enumerate() {
            if let Poll::Ready(answer) = question.0.as_mut().poll(cx) {
                return Poll::Ready((self.0.swap_remove(nth).0, answer));
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn whichever_is_answered_first_comes_first_and_what_is_given_up_is_dropped() {
        let mut asking = Asking::default();
        let (answers, questions): (Vec<_>, Vec<_>) = (0..3).map(|_| oneshot::channel::<u8>()).unzip();
        for (name, question) in questions.into_iter().enumerate() {
            asking.add(name, question);
        }
        assert!(asking.ready().is_none());
        let [first, second, third] = <[_; 3]>::try_from(answers).unwrap();
        third.send(7).unwrap();
        assert_eq!(asking.next().await, (2, Ok(7)));
        asking.give_up(0);
        assert!(first.is_closed(), "its question is there no more");
        tokio::spawn(async move { second.send(8) });
        assert_eq!(asking.next().await, (1, Ok(8)), "it is woken");
        assert!(asking.ready().is_none());
    }
}
